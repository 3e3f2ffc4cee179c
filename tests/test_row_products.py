"""Products and sums over rows in fixed blocks: torch's values and gradients, the same bits for any number of threads."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from uge_core import row_products
from uge_core.machine import cores
from uge_core.row_products import BLOCK, elu, normalised, plus, row_sums, times

SIZES = [1, 2, BLOCK - 1, BLOCK, 2 * BLOCK + 7]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    found = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return found.requires_grad_()


def same(ours: Tensor, theirs: Tensor, leaves: list[Tensor]) -> None:
    torch.testing.assert_close(ours, theirs)
    slope = torch.randn(ours.shape, generator=torch.Generator().manual_seed(9), dtype=ours.dtype)
    for a, b in zip(torch.autograd.grad(ours, leaves, slope), torch.autograd.grad(theirs, leaves, slope), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("num", SIZES)
@pytest.mark.parametrize("members", [None, 1, 3])
def test_products_are_torchs(num: int, members: int | None) -> None:
    ahead = () if members is None else (members,)
    x, w, b = drawn(*ahead, num, 5), drawn(*ahead, 5, 3, seed=1), drawn(*ahead, 3, seed=2)
    same(plus(times(x, w), b), x @ w + b.unsqueeze(-2), [x, w, b])
    fixed = x.detach()[0] if members else x.detach()  # features that all members share
    same(times(fixed, w), fixed @ w, [w])
    torch.testing.assert_close(row_sums(x), x.sum(-2))


@pytest.mark.parametrize("num", SIZES)
def test_elu_and_normalisation_are_torchs(num: int) -> None:
    x, scale, shift = drawn(num, 4), drawn(4, seed=1), drawn(4, seed=2)
    same(elu(x), torch.nn.functional.elu(x), [x])
    if num > 1:
        theirs = torch.nn.functional.batch_norm(x, None, None, scale, shift, training=True)
        same(normalised(x, scale, shift), theirs, [x, scale, shift])


def test_no_rows() -> None:
    x, w, b = drawn(0, 4), drawn(4, 3), drawn(3)
    same(plus(times(x, w), b), x @ w + b, [x, w, b])


def test_bits_depend_on_neither_threads_nor_who_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w, b = (t.detach().float().requires_grad_() for t in (drawn(5 * BLOCK + 11, 33), drawn(33, 7), drawn(7)))
    found = []
    before = torch.get_num_threads()
    try:
        for threads, worth in ((1, 0), (2, 0), (3, 0), (2, 1 << 40)):
            torch.set_num_threads(threads)
            monkeypatch.setattr(row_products, "_WORTH", worth)
            monkeypatch.setattr(row_products, "cores", lambda: 3)
            out = normalised(elu(plus(times(x, w), b)), b, b)
            found.append([out, *torch.autograd.grad(out.square().sum(), [x, w, b])])
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, another) for one, another in zip(found[0], other, strict=True))


@pytest.mark.slow
def test_threads_to_come_have_the_callers_number() -> None:
    code = (
        "import torch, threading; from uge_core.row_products import times\n"
        "torch.set_num_threads(2); times(torch.randn(9000, 64), torch.randn(64, 8)); found = []\n"
        "t = threading.Thread(target=lambda: found.append(torch.get_num_threads())); t.start(); t.join()\n"
        "print(found, torch.get_num_threads())"
    )
    assert run_alone(code) == "[2] 2"


def run_alone(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.strip()


@pytest.mark.slow
def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import os, torch; from uge_core.row_products import times; torch.set_num_threads(1)\n"
        "x, w = torch.randn(5000, 64), torch.randn(64, 8); here = times(x, w)\n"
        "if not (pid := os.fork()):\n    os._exit(not torch.equal(times(x, w), here))\n"
        "print(os.waitpid(pid, 0)[1])"
    )
    assert run_alone(code) == "0"


@pytest.mark.slow
def test_many_may_be_the_first() -> None:
    code = (
        "import threading, torch; from uge_core.row_products import times; torch.set_num_threads(2)\n"
        "x, w, gate = torch.randn(20000, 64), torch.randn(64, 8), threading.Barrier(8)\n"
        "work = lambda: (gate.wait(), times(x, w))\n"
        "started = [threading.Thread(target=work) for _ in range(8)]\n"
        "[t.start() for t in started]; [t.join() for t in started]\n"
        "print(torch.get_num_threads(), sum('ThreadPool' in t.name for t in threading.enumerate()))"
    )
    assert run_alone(code) == f"2 {cores()}"


def test_a_large_mean_keeps_the_digits_of_what_is_around_it() -> None:
    x = drawn(3000, 4).detach().float()
    one, zero = torch.ones(4), torch.zeros(4)
    torch.testing.assert_close(normalised(x + 1e4, one, zero), normalised(x, one, zero), rtol=0, atol=2e-3)
    assert normalised(torch.full((3000, 4), 1e6), one, zero).abs().max() == 0


def test_a_second_derivative_is_refused() -> None:
    x, w = drawn(5, 4), drawn(4, 3)
    (slope,) = torch.autograd.grad(times(x, w).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


def test_an_error_in_a_block_is_the_callers() -> None:
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError):
        times(torch.randn(5 * BLOCK, 33), torch.randn(5, 7))
    assert torch.get_num_threads() == before


@pytest.mark.gpu
def test_on_a_gpu_torch_does_it() -> None:
    x, w, b = drawn(100, 5), drawn(5, 3, seed=1), drawn(3, seed=2)
    there = plus(times(x.cuda(), w.cuda()), b.cuda())
    torch.testing.assert_close(
        normalised(elu(there), b.cuda(), b.cuda()).cpu(), normalised(elu(plus(times(x, w), b)), b, b)
    )
