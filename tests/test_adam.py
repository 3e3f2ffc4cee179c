"""Steps are torch's own, to the bit, and torch's compiler is not loaded for them."""

import subprocess
import sys

import pytest
import torch

from uge_core.adam import Adam


@pytest.mark.parametrize("eps", [1e-8, 1e-15])
def test_steps_are_those_of_torchs_class(eps: float) -> None:
    start = [torch.randn(shape, generator=torch.Generator().manual_seed(0)) for shape in ((4, 3), (5,), (2, 2))]
    ours, theirs = ([t.clone().requires_grad_() for t in start] for _ in range(2))
    adam = Adam([(ours[:1], 0.0), (ours[1:], 0.3), ([], 0.0)], 0.05, eps)
    groups = [{"params": theirs[:1], "weight_decay": 0.0}, {"params": theirs[1:], "weight_decay": 0.3}]
    torchs = torch.optim.Adam(groups, lr=0.05, eps=eps, fused=True)
    for step in range(7):
        adam.clear()
        torchs.zero_grad(set_to_none=True)
        for leaves in (ours, theirs):
            # the last tensor has no gradient in every other step
            sum((leaf**3).sum() for leaf in leaves[: 3 - step % 2]).backward()
        adam.step()
        torchs.step()
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)
            assert adam.state.get(a, {}).keys() == torchs.state.get(b, {}).keys()
            assert all(torch.equal(t, torchs.state[b][name]) for name, t in adam.state.get(a, {}).items())


@pytest.mark.slow
def test_a_training_does_not_wait_for_torchs_compiler() -> None:
    code = (
        "import sys; sys.path.insert(0, 'tests'); import toys; graph = toys.town();"
        "toys.run(graph, toys.config(graph, 'cfc', epochs=2), deterministic=True);"
        "print(sorted(sys.modules.keys() & {'torch._dynamo', 'torch._inductor', 'sympy'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
