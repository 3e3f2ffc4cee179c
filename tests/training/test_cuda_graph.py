"""Recorded steps, as far as they can be shown without a GPU: all but the recording itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from toys import shop, town

from uge_core.graph.scores import DOT
from uge_core.graph.split import split_links
from uge_core.ranks import ALONE
from uge_core.training import cuda_graph
from uge_core.training.config import RunConfig
from uge_core.training.edge_loss import loss as edge_loss
from uge_core.training.edge_loss.compiled import CompiledPasses
from uge_core.training.edge_loss.plain import TorchPasses
from uge_core.training.fit import fit

CPU = torch.device("cpu")
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique", "item")


class Plain(TorchPasses):
    """The passes a GPU takes, on the CPU."""

    compiled = CompiledPasses

    def __init__(self, pairs, pool=None, scorer=DOT, ranks=ALONE):
        super().__init__(pairs, CPU, scorer)

    def triples(self, epoch):
        return self.compiled(self.pairs).triples(epoch)


@pytest.fixture
def plain_passes(monkeypatch):
    monkeypatch.setattr(edge_loss, "CompiledPasses", Plain)


def configs(graph, backbone):
    return [
        RunConfig.resolve(
            graph,
            sensitive=graph.audited[0].name,
            backbone=backbone,
            method=method,
            epochs=12,
            exposure="seen",
            options=options,
        )
        for method, options in (
            ("none", {}),
            ("uge-c", {}),
            ("uge-ok", {}),
            ("uge-ok", {"moments": 2}),
            ("fairwalk", {}),
            ("uge-ork", {}),
        )
    ]


def called_again(call):
    """Stands for a recording: runs the call itself, whose results are copied to places that stay."""
    places = tuple(t.clone() for t in call())

    def again():
        for place, fresh in zip(places, call(), strict=True):
            place.copy_(fresh)

    return again, places


def trained(graph, backbone, monkeypatch, record):
    chosen = []
    choose = cuda_graph.choose

    def spied(*args, **kwargs):
        chosen.append(choose(*args, record=record, **kwargs))
        return chosen[-1]

    monkeypatch.setattr(cuda_graph, "choose", spied)
    fitted = fit(configs(graph, backbone), graph, split_links(graph), device="cpu")
    monkeypatch.setattr(cuda_graph, "choose", choose)
    return fitted, chosen[0].how


@pytest.mark.slow
@pytest.mark.parametrize(("make", "backbone"), [(town, "node2vec"), (town, "gcn"), (shop, "mf")])
def test_replayed_steps_are_the_written_ones(plain_passes, monkeypatch, make, backbone):
    """The same draws, from places that stay; recording them takes no step and no draw."""
    graph = make()
    written, how = trained(graph, backbone, monkeypatch, None)
    assert how == "compiled passes"
    replayed, how = trained(graph, backbone, monkeypatch, called_again)
    assert how == "recorded"
    for a, b in zip(written, replayed, strict=True):
        np.testing.assert_allclose(a.embedding, b.embedding, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(a.history["total"], b.history["total"], rtol=1e-4)
    assert np.abs(written[0].embedding - written[1].embedding).max() > 0.01


def test_a_recording_that_fails_leaves_the_training_as_it_is(plain_passes, monkeypatch):
    """Even one that breaks off after some steps; the stamp says what ran."""
    graph = town()

    def fails(call):
        call()
        raise RuntimeError("operation not permitted when stream is capturing")

    written, _ = trained(graph, "node2vec", monkeypatch, None)
    fallen_back, how = trained(graph, "node2vec", monkeypatch, fails)
    assert how == "as written: recording failed (operation not permitted when stream is capturing)"
    for a, b in zip(written, fallen_back, strict=True):
        np.testing.assert_array_equal(a.embedding, b.embedding)


class Listening(TorchDispatchMode):
    """Notes operations that make the host wait for the device."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.split(".")[0]
        masks = [i for a in args if isinstance(a, (list, tuple)) for i in a if isinstance(i, torch.Tensor)]
        if name in WAITS or (name.startswith("index") and any(i.dtype == torch.bool for i in masks)):
            self.waits.append(name)
        return func(*args, **(kwargs or {}))


def test_listening_hears_a_wait():
    with Listening() as heard:
        torch.ones(3)[torch.tensor([True, False, True])]
        float(torch.ones(()))
    assert set(heard.waits) == {"index", "_local_scalar_dense"}


@pytest.mark.parametrize(("make", "backbone"), [(town, "node2vec"), (town, "gcn"), (shop, "mf")])
def test_a_step_waits_for_nothing(plain_passes, monkeypatch, make, backbone):
    graph, heard = make(), []

    def record(call):
        call()  # what is made once may ask
        with Listening() as listening:
            results = call()
        heard.extend(listening.waits)
        return (lambda: call() and None), results

    _, how = trained(graph, backbone, monkeypatch, record)
    assert how == "recorded" and heard == []
