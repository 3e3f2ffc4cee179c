"""Attention over a node's incoming messages: compiled on the CPU, plain torch elsewhere.

out_v = sum_{u -> v} a_uv x_u,   a_uv = softmax_u(leaky_relu(source_u + target_v)), slope 0.2, by head
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from uge_core.autograd import apply
from uge_core.backbones._inputs import Gather, Inputs
from uge_core.kernels import attention

_WORTH = 8000  # messages whose pass in 16 blocks takes as long as handing the blocks to other threads

kernels: Any = attention  # numba's dispatchers take starred arguments, its types say they do not


def attend(x: Tensor, source: Tensor, target: Tensor, inputs: Inputs) -> Tensor:
    """(N, H w) attention with H heads.

    Args:
        x: (N, H w) what nodes send.
        source: (N, H) the sender's part of each logit.
        target: (N, H) the receiver's part.
        inputs: where messages run.
    """
    if x.device.type == "cpu":
        return apply(_Compiled, x, source, target, inputs)
    return attend_in_torch(x, source, target, inputs)


class _Compiled(torch.autograd.Function):
    """Nothing per message is kept between the ways: shares are worked out again on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, source: Tensor, target: Tensor, inputs: Inputs) -> Tensor:
        x, source, target = x.contiguous(), source.contiguous(), target.contiguous()
        out, peak, scale = torch.zeros_like(x), torch.empty_like(source), torch.empty_like(source)
        start, sender = inputs.received
        by_head = (len(x), source.shape[1], -1)
        given = [x.view(by_head).numpy(), source.numpy(), target.numpy()]
        made = [out.view(by_head).numpy(), peak.numpy(), scale.numpy()]
        _by_rows(inputs, start, lambda a, b: kernels.attend(*given, start, sender, a, b, *made))
        ctx.save_for_backward(x, source, target, peak, scale, out)
        ctx.inputs = inputs
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, source, target, peak, scale, out = ctx.saved_tensors
        gradient, inputs = grads[0].contiguous(), ctx.inputs
        by_head = (len(x), source.shape[1], -1)
        along = (gradient * out).view(by_head).sum(-1)
        at_target = torch.stack([target, peak, scale, along], 1).numpy()
        dx, dsource, dtarget = torch.zeros_like(x), torch.zeros_like(source), torch.zeros_like(target)
        start, receiver = inputs.sent
        dlogit = torch.empty(len(receiver), source.shape[1]).numpy()
        given = [x.view(by_head).numpy(), source.numpy(), at_target, gradient.view(by_head).numpy(), start, receiver]
        made = [dx.view(by_head).numpy(), dsource.numpy(), dlogit]
        _by_rows(inputs, start, lambda a, b: kernels.attend_back(*given, a, b, *made))
        start = inputs.received[0]
        _by_rows(inputs, start, lambda a, b: kernels.collect(dlogit, start, inputs.place, a, b, dtarget.numpy()))
        return dx, dsource, dtarget, None


def _by_rows(inputs: Inputs, start: np.ndarray[Any, Any], work: Callable[[int, int], Any]) -> None:
    """Runs `work` on blocks of rows with about as many messages each, on all cores; in turn where there are few."""
    cuts = np.searchsorted(start, np.linspace(0, start[-1], 16 + 1))
    cuts[0], cuts[-1] = 0, len(start) - 1
    blocks = cuts[:-1].tolist(), cuts[1:].tolist()
    list(map(work, *blocks) if start[-1] < _WORTH else inputs.pool.map(work, *blocks))


def attend_in_torch(x: Tensor, source: Tensor, target: Tensor, inputs: Inputs) -> Tensor:
    """As `attend`, in torch operations with rows per message."""
    heads = source.shape[1]
    by_source, by_target = inputs.messages
    logit = leaky_relu(by_source.spread(source) + by_target.spread(target), negative_slope=0.2)
    # a shift by the node's largest logit leaves the softmax as it is and keeps exp in range
    raised = (logit - _segment_max(logit.detach(), by_target)).exp()
    share = raised / by_target.spread(by_target.collect(raised))
    message = by_source.spread(x).view(len(share), heads, -1) * share[:, :, None]
    return by_target.collect(message.flatten(1))


def _segment_max(logit: Tensor, by_target: Gather) -> Tensor:
    """(M, H) the largest logit among each edge's fellow edges into the same node."""
    index = by_target.index[:, None].expand_as(logit)
    top = torch.full((by_target.rows.shape[0], logit.shape[1]), -torch.inf, device=logit.device)
    return top.scatter_reduce(0, index, logit, "amax").index_select(0, by_target.index)
