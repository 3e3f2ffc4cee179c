"""Tries to solve for counts that are not told, by integer programs over everything that was released of a population.

Who tries knows the rule (a small count is 1 to 11), all groups' names, the population's size, which group hides how many
people the small ones have, and each released record: numbers of pairs, of edges, of lists, of people tested, and the
number that are left out. A trial holds where each count that is not told may still be 1 and may still be 11. A solver
that does not finish is a failure.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from uge_core.audit.disclosure import combined
from uge_core.graph.graph import UNKNOWN, Attribute, AttributedGraph
from uge_core.graph.suppression import FEWEST
from uge_core.runs.audits import audit_record
from uge_core.runs.disclosure import Release
from uge_core.runs.external import add_external
from uge_core.runs.store import RunStore


class Unknowns:
    """Whole numbers of which linear equations are known."""

    def __init__(self) -> None:
        """None yet."""
        self.low: list[float] = []
        self.high: list[float] = []
        self.rows: list[tuple[Mapping[int, float], float, float]] = []

    def new(self, low: float = 0, high: float = 1e6) -> int:
        """Another number, between two ends."""
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def know(self, parts: Sequence[tuple[float, int]], low: float, high: float | None = None) -> None:
        """The sum of some numbers times their factors is between two ends, or just one number."""
        row: dict[int, float] = {}
        for factor, number in parts:
            row[number] = row.get(number, 0.0) + factor
        self.rows.append((row, low, low if high is None else high))

    def ends(self, number: int) -> tuple[float, float] | str:
        """The least and the largest that a number may be; in words where the solver did not finish."""
        matrix = np.zeros((len(self.rows), len(self.low)))
        for i, (row, _, _) in enumerate(self.rows):
            matrix[i, list(row)] = list(row.values())
        known = LinearConstraint(matrix, [r[1] for r in self.rows], [r[2] for r in self.rows])
        found = []
        for sign in (1.0, -1.0):
            goal = np.zeros(len(self.low))
            goal[number] = sign
            result = milp(
                goal,
                constraints=known if self.rows else (),
                bounds=Bounds(self.low, self.high),
                integrality=np.ones(len(goal), dtype=np.int64),
                options={"time_limit": 60},
            )
            if result.x is None or result.status != 0:
                return f"the solver stopped: {result.message}"
            else:
                found.append(round(float(result.x[number])))
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class Population:
    """People with a graph, some of whose groups are small."""

    graph: AttributedGraph
    embedding: np.ndarray
    nested: bool
    base: AttributedGraph | None = field(default=None)


def population(rng: np.random.Generator) -> Population:
    """A random one: two to five groups, at least one of them small, or a few people without a value."""
    n = int(rng.integers(90, 340))
    num = int(rng.integers(2, 6))
    small = rng.integers(1, FEWEST, int(rng.integers(1, num)))
    missing = int(rng.choice([0, 0, 1, 7, 11, 30]))
    rest = n - int(small.sum()) - missing
    share = rng.dirichlet(np.full(num - len(small), 4.0))
    sizes = [*np.maximum((share * rest).astype(int), FEWEST), *small]
    codes = np.concatenate([np.repeat(rng.permutation(num), sizes), np.full(missing, UNKNOWN)])
    n = len(codes)
    order = rng.permutation(n)
    region = Attribute("region", codes[order], tuple("abcde"[:num]))
    values = [region, Attribute("gender", rng.integers(0, 2, n), ("f", "m"))]
    nested = bool(rng.random() < 0.5)
    if nested:  # districts of regions
        district = np.where(region.codes >= 0, 2 * region.codes + (rng.random(n) < 0.3), UNKNOWN)
        there, district_codes = np.unique(district, return_inverse=True)
        shift = int(there[0] < 0)
        names = tuple(f"{'abcde'[v // 2]}{v % 2}" for v in there[shift:].tolist())
        values.append(Attribute("district", district_codes - shift if shift else district_codes, names))
    degree = float(rng.uniform(4, 12))
    same = codes[order][:, None] == codes[order][None]
    chance = degree / n * np.where(same, 1.6, 0.6)
    u, v = np.nonzero(np.triu(rng.random((n, n)) < chance, 1))
    graph = AttributedGraph(f"p{n}", n, np.stack([u, v]).astype(np.int64), tuple(values))
    embedding = rng.normal(size=(n, 6)).astype(np.float32)
    embedding[:, 0] += graph.attributes[0].codes
    return Population(graph, embedding, nested)


def released(graph: AttributedGraph, embedding: np.ndarray, store: RunStore, **asked: Any) -> dict[str, Any]:
    """The record of an audit."""
    run = add_external(embedding, graph, store, file="z.npy", split_seed=0)
    record: dict[str, Any] = audit_record(run, graph, store, attackers=["linear"], **asked)
    return record


def told_people(record: Mapping[str, Any], attribute: str) -> dict[str, int]:
    """People counted of each group, out of the numbers of pairs within it."""
    row = _row(record, "dp", attribute, None)
    within = {c["a"]: c["n"] for c in row["cells"] if c["a"] == c["b"]}
    sizes = {label: (1 + math.isqrt(1 + 8 * n)) // 2 for label, n in within.items()}
    for label, n in within.items():
        if n == 0:  # one person, or nobody: pairs with another group say which
            sizes[label] = (
                max(
                    (c["n"] // max(sizes[b if a == label else a], 1))
                    for c in row["cells"]
                    for a, b in [(c["a"], c["b"])]
                    if a != b and label in (a, b) and sizes[b if a == label else a]
                )
                if len(within) > 1 and max(within.values())
                else 0
            )
    return sizes


def _row(record: Mapping[str, Any], metric: str, attribute: str | None, variant: str | None) -> dict[str, Any]:
    rows = [r for r in record["rows"] if (r["metric"], r["attribute"], r["variant"]) == (metric, attribute, variant)]
    found: dict[str, Any] = rows[0]
    return found


def attack(p: Population, record: Mapping[str, Any], a: Attribute) -> Iterator[tuple[str, str | None]]:
    """Solves for the sizes of one attribute's small groups, and for its small cells of edges and lists."""
    told = told_people(record, a.name)
    solver = Unknowns()
    people: dict[str, int] = {}
    left: dict[str, int] = {}
    small = {label for label, n in zip(a.labels, a.sizes.tolist(), strict=True) if 0 < n < FEWEST}
    missing = int(a.unknown.sum())
    for label in a.labels:
        if a.sizes[a.labels.index(label)] == 0:
            continue
        # who knows the rule knows that a group that is not told is small, or hides one
        alone = label in small and any(told.get(other) for other in a.labels)
        people[label] = solver.new(1, FEWEST - 1) if alone else solver.new(FEWEST if told.get(label) else 1)
        left[label] = solver.new(0)
        solver.know([(1, people[label]), (-1, left[label])], told.get(label, 0))
    nobody = solver.new(0) if missing == 0 or missing >= FEWEST else solver.new(1, FEWEST - 1)
    if missing == 0 or missing >= FEWEST:
        solver.know([(1, nobody)], missing)
    solver.know([*((1, number) for number in people.values()), (1, nobody)], p.graph.num_nodes)
    # one group alone hides the small ones, and this one is known
    hiding = [g for g in left if g not in small and a.sizes[a.labels.index(g)] != told.get(g, 0)]
    for label in left:
        if label not in small and label not in hiding:
            solver.know([(1, left[label])], 0)
    if p.nested and a.name == "district":
        region = p.graph.attribute("region")
        county = told_people(record, "region")
        for label, n in zip(region.labels, region.sizes.tolist(), strict=True):
            if county.get(label) == n and not missing:
                solver.know([(1, people[d]) for d in people if d[0] == label], n)
    wanted = {f"people of {label}": people[label] for label in small}
    if 0 < missing < FEWEST:
        wanted["people without a value"] = nobody
    for name, number in wanted.items():
        yield f"{a.name}: {name}", _narrow(solver.ends(number))
    yield from _edges(p, record, a, told)
    yield from _lists(p, record, a)


def _narrow(ends: tuple[float, float] | str) -> str | None:
    if isinstance(ends, str):
        return ends
    low, high = ends
    return None if low <= 1 and high >= FEWEST - 1 else f"only {low} to {high} are possible"


def _edges(
    p: Population, record: Mapping[str, Any], a: Attribute, told: Mapping[str, int]
) -> Iterator[tuple[str, str | None]]:
    """Small cells of held-out edges, and of training edges: the pairs of a cell less those that the test set has."""
    row = _row(record, "eo", a.name, "held-out")
    counted = sum(told.values()) == p.graph.num_nodes  # nobody is left out, so that all edges are in some cell
    held = next(r["n"] for r in record["rows"] if r["metric"] == "dp" and r["variant"] == "test-set")
    assert held is not None
    solver, cells = Unknowns(), {}
    for c in row["cells"]:
        cells[c["a"], c["b"]] = solver.new(0) if c["withheld"] else solver.new(c["n"])
    hidden = [key for key, c in zip(cells, row["cells"], strict=True) if c["withheld"]]
    if counted and hidden:
        total = round(0.1 * p.graph.num_edges)
        solver.know([(1, number) for number in cells.values()], total)
    for c, key in zip(row["cells"], cells, strict=True):
        if not c["withheld"] and (not hidden or _true_edges(p, a, key) == c["n"]):
            solver.know([(1, cells[key])], c["n"])
    for key in hidden:
        if 0 < _true_edges(p, a, key) < FEWEST:
            yield f"{a.name}: held-out edges {'-'.join(key)}", _narrow(solver.ends(cells[key]))
    test_set = _row(record, "dp", a.name, "test-set")
    solver, known = Unknowns(), {}
    for c in test_set["cells"]:
        x, y = told[c["a"]], told[c["b"]]
        pairs = x * (x - 1) // 2 if c["a"] == c["b"] else x * y
        known[c["a"], c["b"]] = solver.new(0, pairs - c["n"]), pairs - c["n"]
    training = p.graph.num_edges - round(0.1 * p.graph.num_edges)
    true = {key: _true_edges(p, a, key, held_out=False) for key in known}
    small = [key for key in known if 0 < true[key] < FEWEST]
    if counted and small:
        solver.know([(1, number) for number, _ in known.values()], training)
    for key, (number, most) in known.items():
        if key not in small and true[key] == most:
            solver.know([(1, number)], most)
    if sum(told.values()) == p.graph.num_nodes:
        for key in small:
            yield f"{a.name}: training edges {'-'.join(key)}", _narrow(solver.ends(known[key][0]))


def _true_edges(p: Population, a: Attribute, cell: tuple[str, str | None], held_out: bool = True) -> int:
    from uge_core.graph.split import split_links

    split = split_links(p.graph, seed=0)
    u, v = a.codes[split.test if held_out else np.concatenate([split.train, split.validation], axis=1)]
    first, second = a.labels.index(cell[0]), a.labels.index(cell[1] or cell[0])
    return int((((u == first) & (v == second)) | ((u == second) & (v == first))).sum())


def _lists(p: Population, record: Mapping[str, Any], a: Attribute) -> Iterator[tuple[str, str | None]]:
    """Groups with few lists: all lists are known, and those of each group that is told."""
    row, whole = _row(record, "ndcg_gap", a.name, "held-out"), _row(record, "ndcg_at_10", None, "held-out")
    if sum(told_people(record, a.name).values()) < p.graph.num_nodes:
        return
    solver = Unknowns()
    lists = {c["a"]: (solver.new(0), c) for c in row["cells"]}
    hidden = [label for label, (_, c) in lists.items() if c["withheld"]]
    solver.know([(1, number) for number, _ in lists.values()], whole["n"])
    shown = [label for label in lists if label not in hidden]
    for label in shown[1:] if hidden else shown:  # the first hides the small ones
        solver.know([(1, lists[label][0])], lists[label][1]["n"])
    for label in hidden:
        yield f"{a.name}: lists of {label}", _narrow(solver.ends(lists[label][0]))


def twins(rng: np.random.Generator, store: RunStore) -> str | None:
    """Two populations that differ in how small the small group is: each count that is told of them must be the same."""
    n, small = int(rng.integers(120, 300)), [int(rng.integers(1, 6)), int(rng.integers(6, 12))]
    large = int(rng.integers(60, n - 40))
    counts = []
    for few in small:
        codes = np.repeat([0, 1, 2], [large - few, n - large, few])
        graph = AttributedGraph(
            "t", n, np.stack([np.arange(n - 1), np.arange(1, n)]), (Attribute("x", codes, tuple("abc")),)
        )
        record = released(graph, np.random.default_rng(1).normal(size=(n, 4)).astype(np.float32), store)
        rows = [r for r in record["rows"] if r["attribute"] == "x" and r["metric"] in ("auc", "micro_f1", "dp")]
        counts.append(
            [
                (r["metric"], r["variant"], r["n"], r["floor_majority"], [(c["a"], c["b"], c["n"]) for c in r["cells"]])
                for r in rows
                if r["variant"] in ("standard", None, "calibrated")
            ]
        )
    return None if counts[0] == counts[1] else f"groups of {small[0]} and {small[1]} are told differently"


def bins(rng: np.random.Generator, store: RunStore) -> str | None:
    """Ages divided at 30 and at 31: how many are 30 must stay open."""
    n = int(rng.integers(150, 320))
    age = rng.integers(18, 60, n)
    age[rng.choice(np.flatnonzero(age == 30), max(0, int((age == 30).sum()) - 9), replace=False)] = 40
    u, v = np.nonzero(np.triu(rng.random((n, n)) < 6 / n, 1))
    z = rng.normal(size=(n, 4)).astype(np.float32)
    told = []
    for edge in (30, 31):
        codes = np.digitize(age, [edge, 45])
        a = Attribute("age", codes, (f"under {edge}", f"{edge} to 45", "older"), ordered=True)
        record = released(AttributedGraph("b", n, np.stack([u, v]).astype(np.int64), (a,)), z, store)
        told.append(list(told_people(record, "age").values()))
    solver = Unknowns()
    parts = [solver.new() for _ in range(4)]  # under 30, 30, 31 to 45, older
    out = [[solver.new() for _ in range(3)] for _ in range(2)]
    for (first, second, third), sizes, left in zip(
        (((0,), (1, 2), (3,)), ((0, 1), (2,), (3,))), told, out, strict=True
    ):
        for group, size, spare in zip((first, second, third), sizes, left, strict=True):
            solver.know([*((1, parts[i]) for i in group), (-1, spare)], size)
        solver.know([(1, spare) for spare in left], n - sum(sizes))
    solver.know([(1, part) for part in parts], n)
    return _narrow(solver.ends(parts[1])) if (age == 30).any() else None


def scenario(rng: np.random.Generator, store: RunStore) -> str | None:
    """One person edited: which group lost somebody must stay open."""
    n = int(rng.integers(120, 300))
    codes = rng.integers(0, 3, n)
    u, v = np.nonzero(np.triu(rng.random((n, n)) < 6 / n, 1))
    edges = np.stack([u, v]).astype(np.int64)
    base = AttributedGraph("s", n, edges, (Attribute("x", codes, tuple("abc")),))
    z = rng.normal(size=(n, 4)).astype(np.float32)
    before, after = told_people(released(base, z, store), "x"), []
    for _ in range(2):
        who, edited = int(rng.integers(n)), codes.copy()
        edited[who] = (codes[who] + 1) % 3
        graph = AttributedGraph("s", n, edges, (Attribute("x", edited, tuple("abc")),), base=base)
        after.append(told_people(released(graph, z, store), "x"))
    differences = {tuple(before[g] - sizes.get(g, 0) for g in before) for sizes in after}
    return None if all(len(set(d)) == 1 for d in differences) else f"groups differ by {differences}"


def crossing(p: Population, store: RunStore) -> Iterator[tuple[str, str | None]]:
    """Combinations of two attributes, whose sums over rows and columns are known."""
    record = released(p.graph, p.embedding, store, crossings=["gender+region"])
    row = next((r for r in record["rows"] if r["attribute"] == "gender+region"), None)
    if row is None:
        return
    attributes = p.graph.attribute("gender"), p.graph.attribute("region")
    classes = tuple(np.where(a.codes >= 0, a.codes, -1) for a in attributes)
    hidden = Release().combinations(attributes, classes, p.graph)
    table = combined(classes, p.graph)
    solver = Unknowns()
    at = {tuple(place): solver.new(1) for place in np.argwhere(hidden).tolist()}
    solver.know([(1, number) for number in at.values()], int(table[hidden].sum()))
    for axis, a in enumerate(attributes):
        told = told_people(record, a.name)
        exact = [told.get(label) == n for label, n in zip(a.labels, a.sizes.tolist(), strict=True)]
        everybody = sum(told.values()) + int(a.unknown.sum()) == p.graph.num_nodes
        for line, known in enumerate([*exact[: table.shape[axis] - 1], everybody]):
            mine = [(1.0, number) for place, number in at.items() if place[axis] == line]
            if mine and known:
                solver.know(mine, int(table.take(line, axis)[hidden.take(line, axis)].sum()))
    for place, number in at.items():
        if table[place] < FEWEST:
            yield f"people of combination {place}", _narrow(solver.ends(number))


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """Fifty populations, each with its small groups, cells, lists and combinations; and differences of two releases."""
    for i in range(3 if quick else 50):
        rng = np.random.default_rng([seed, 22, i])
        with tempfile.TemporaryDirectory() as folder:
            store = RunStore(Path(folder) / "store")
            p = population(rng)
            record = released(p.graph, p.embedding, store)
            for a in p.graph.audited:
                for name, fault in attack(p, record, a):
                    yield f"population {i}, {name}", fault
            for name, fault in crossing(p, store):
                yield f"population {i}, {name}", fault
            for trial in (twins, bins, scenario):
                yield f"population {i}, {trial.__name__}", trial(rng, RunStore(Path(folder) / trial.__name__))
