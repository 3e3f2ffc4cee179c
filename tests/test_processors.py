"""Other processors give the same figures: those that libraries can be switched to, and another number of threads.

Bits are the same within one setting of one processor alone, but for what decides an order or is withheld by it: scores,
and the sums of DP.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import processor_figures as figures
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import uge_core as uge
from uge_core import row_products
from uge_core.audit import ndcg, parity, record
from uge_core.graph.scores import Factors
from uge_core.graph.split import ranking_task, split_links

ROOT = Path(__file__).resolve().parents[1]
# SHA-256 of the bits that every processor gives, of inputs made of whole numbers.
SCORES, PROBABILITIES = "8dab408640b2b65e", "3906cee8eb0027a1"

# Kernels for a processor of 2008 and of 2013, and one thread or two; the third is this machine's own. What numba,
# torch, OpenBLAS, MKL, numpy and the C library choose by the processor is chosen for them.
SWITCHES = {
    "SSE": {
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": "",
        "ATEN_CPU_CAPABILITY": "default",
        "OPENBLAS_CORETYPE": "Nehalem",
        "MKL_CBWR": "COMPATIBLE",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    },
    "AVX2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx2,+fma",
        "ATEN_CPU_CAPABILITY": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
    },
}


def capable(name: str) -> None:
    level = torch.backends.cpu.get_cpu_capability()
    if level not in {"SSE": ("DEFAULT", "AVX2", "AVX512"), "AVX2": ("AVX2", "AVX512")}[name]:
        pytest.skip(f"this processor has {level}, not {name}")


@cache
def figures_here() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(figures.audits()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", SWITCHES)
def test_other_processors_give_the_same_figures(name: str, tmp_path: Path) -> None:
    """An audit's figures and the tests that tell processors apart, in a process of its own under a switch."""
    capable(name)
    files = [str(p) for p in sorted((ROOT / "tests").rglob("*.py")) if "mark.processors" in p.read_text("utf-8")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "tests/processor_figures.py", str(tmp_path / "out.json"), *files],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")} | SWITCHES[name],
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 15
    found = json.loads((tmp_path / "out.json").read_text())
    # a switch that a library no longer knows would test nothing
    assert found["kernels"]["torch"] == {"SSE": "DEFAULT"}.get(name, name)
    assert found["kernels"]["openblas"] == [SWITCHES[name]["OPENBLAS_CORETYPE"]]
    here = figures_here()
    assert set(found["audits"]) == set(here)
    for kind, rows in here.items():
        assert len(rows) > 20
        said = record.differences({"rows": rows}, {"rows": found["audits"][kind]})
        assert said.words is None, f"{kind}: {said.words}"


@pytest.mark.slow
@pytest.mark.processors
@pytest.mark.parametrize(("backbone", "method"), figures.TRAININGS)
def test_training_does_not_depend_on_the_number_of_threads(
    backbone: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Also where what is computed is too little for several threads by itself.
    monkeypatch.setattr(row_products, "_WORTH", 0)
    threads, bits = torch.get_num_threads(), set()
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            bits.add(figures.trained(backbone, method).tobytes())
    finally:
        torch.set_num_threads(threads)
    assert len(bits) == 1


def digest(*arrays: np.ndarray) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()[:16]


def whole(num: int, dim: int, seed: int = 0) -> np.ndarray:
    """(num, dim) float32 of whole numbers over 1024, the same on every machine."""
    return np.random.default_rng(seed).integers(-2048, 2049, (num, dim)).astype(np.float32) / 1024 + np.float32(1 / 3)


@pytest.mark.processors
def test_scores_have_the_bits_of_the_formula_in_order() -> None:
    z, rng = whole(50, 7), np.random.default_rng(1)
    u, v = rng.integers(0, 50, (2, 400))
    found = Factors(z, z).scores(u, v)
    for m in range(400):
        total = 0.0
        for k in range(7):
            total += float(z[u[m], k]) * float(z[v[m], k])
        assert found[m] == total
    assert digest(found) == SCORES


@pytest.mark.processors
def test_sums_of_probabilities_have_the_same_bits_everywhere() -> None:
    town = figures.graph(700)
    groups = {a.name: a.codes for a in town.attributes}
    sums = parity._joint_sums(
        whole(700, 11),
        town,
        np.arange(700),
        groups["city"] * 2 + groups["club"],
        [*groups.values()],
        None,
        lambda share: None,
    )
    assert digest(sums.total, sums.squares, *sums.per_value) == PROBABILITIES


@pytest.mark.processors
@given(st.integers(1, 40), st.integers(1, 17), st.integers(0, 99))
def test_equal_candidates_have_equal_scores_wherever_they_stand(num: int, dim: int, seed: int) -> None:
    z = np.random.default_rng(seed).normal(size=(2, dim)).astype(np.float32)
    rows = np.concatenate([z[:1], np.repeat(z[1:], num, axis=0)])
    lists = Factors(rows, rows).of_lists(np.array([0]), np.arange(1, num + 1)[None])
    assert (lists == lists[0, 0]).all()


@pytest.mark.processors
def test_equal_candidates_are_tied_at_random() -> None:
    # Of a hundred equal candidates the relevant one, wherever it stands, is in the top ten as often as chance says.
    rng = np.random.default_rng(0)
    z = np.repeat(rng.normal(size=(1, 16)).astype(np.float32), 101, axis=0)
    task = ranking_task(figures.graph(300), split_links(figures.graph(300)).test, seed=0)
    task = type(task)(task.targets % 101, task.candidates % 101, task.relevant)
    rank = ndcg.rank_candidates(z, task).rank
    assert len(rank) > 200 and np.mean(rank < 10) == pytest.approx(0.1, abs=0.06)


@pytest.mark.slow
@pytest.mark.processors
def test_floors_do_not_depend_on_the_embedding() -> None:
    town = figures.graph()
    rows = []
    for z in figures.embeddings().values():
        found = uge.audit(z, town, sensitive="city", attackers=["linear"], split_seed=0)
        rows.append({r.metric: r.floor_random for r in found if r.metric in ("ndkl", "ndcg_at_10")})
    assert rows[0]["ndkl"] > 0 and all(row == rows[0] for row in rows)
