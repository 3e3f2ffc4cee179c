"""No test asserts how long something took, unless it is marked `alone`: beside others a machine is as slow as they make it.

What waits for something may give up, in a loop and after a time that nothing takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
TIMES = {"seconds", "took", "elapsed", "duration"}
"""What measured times are called, in answers of ours too."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def reads_clock(node: ast.AST) -> bool:
    """Whether a clock is asked in it: time.monotonic() and the like."""
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in CLOCKS
        and isinstance(n.func.value, ast.Name)
        and n.func.value.id == "time"
        for n in ast.walk(node)
    ) or any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in CLOCKS - {"time"}
        for n in ast.walk(node)
    )


def names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def timed_names(function: Function) -> set[str]:
    """Names that hold what a clock said, or something made of it."""
    timed: set[str] = set()
    while True:
        before = len(timed)
        for node in ast.walk(function):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
                # a call takes what it is told, not how long it takes
                made_of = [n for n in ast.walk(node.value) if isinstance(n, ast.BinOp)] or [node.value]
                if any(reads_clock(n) or (names(n) & timed and not calls(n)) for n in made_of):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    timed |= {name for target in targets for name in names(target)}
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "append"
                and any(reads_clock(a) or names(a) & timed for a in node.args)
            ):
                timed |= names(node.func.value)
        if len(timed) == before:
            return timed


def calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def is_time(node: ast.AST, timed: set[str]) -> bool:
    """Whether an expression is a time that was measured."""
    if reads_clock(node) or names(node) & timed:
        return True
    return any(
        (isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant) and n.slice.value in TIMES)
        or (isinstance(n, ast.Attribute) and n.attr in TIMES)
        or (isinstance(n, ast.Name) and n.id in TIMES)
        for n in ast.walk(node)
    )


def bounds(test: ast.expr, timed: set[str]) -> Iterator[ast.Compare]:
    """Comparisons by which a measured time must be below something."""
    for node in ast.walk(test):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, how, right in zip(sides, node.ops, sides[1:], strict=False):
                small = (
                    left if isinstance(how, ast.Lt | ast.LtE) else right if isinstance(how, ast.Gt | ast.GtE) else None
                )
                if small is not None and is_time(small, timed):
                    yield node


def marks(decorators: list[ast.expr]) -> str:
    return " ".join(ast.unparse(d) for d in decorators)


def timed_asserts(source: str) -> list[int]:
    """Lines of asserts on times outside tests marked alone."""
    tree = ast.parse(source)
    everywhere = next(
        (
            ast.unparse(n.value)
            for n in tree.body
            if isinstance(n, ast.Assign) and "pytestmark" in {name for t in n.targets for name in names(t)}
        ),
        "",
    )
    if "mark.alone" in everywhere:
        return []
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, Function) or "mark.alone" in marks(function.decorator_list):
            continue
        timed = timed_names(function)
        waiting = {id(n) for loop in ast.walk(function) if isinstance(loop, ast.While) for n in ast.walk(loop)}
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and id(node) not in waiting and list(bounds(node.test, timed)):
                found.append(node.lineno)
    return sorted(set(found))


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda p: str(p.relative_to(TESTS)))
def test_no_test_beside_others_asserts_a_time(path: Path) -> None:
    lines = timed_asserts(path.read_text(encoding="utf-8"))
    assert not lines, f"{path.name}:{lines}: mark the test alone, or assert what is done in place of how long it takes"


@pytest.mark.parametrize(
    ("body", "caught"),
    [
        ("began = time.monotonic()\n work()\n assert time.monotonic() - began < 8", True),
        ("began = perf_counter()\n work()\n took = perf_counter() - began\n assert 1 and took <= 8", True),
        ("took = []\n took.append(time.time() - began)\n assert min(took) < 3", True),
        ("assert answer['seconds'] < 0.1", True),
        ("assert 0.1 > answer.seconds", True),
        ("began = time.monotonic()\n work()\n assert time.monotonic() - began > 0.4", False),
        ("limit = time.monotonic() + 20\n while not done():\n  assert time.monotonic() < limit", False),
        ("put(time.time())\n assert count(store) < 3", False),
        ("cpu = time.process_time()\n assert time.process_time() - cpu < 30", False),
        ("assert row['seconds'] == 3 and n < 4", False),
    ],
)
def test_what_is_caught(body: str, caught: bool) -> None:
    for mark, expected in (("", caught), ("@pytest.mark.alone\n", False)):
        assert bool(timed_asserts(f"{mark}def test_it():\n {body}\n")) == expected
    assert timed_asserts(f"pytestmark = [pytest.mark.alone]\ndef test_it():\n {body}\n") == []
