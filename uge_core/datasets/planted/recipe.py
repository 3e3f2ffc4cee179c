r"""Graphs whose right answer is known: the paper's two-phase model, drawn exactly.

Sec. 4 of the paper takes each observed edge from a structural graph that knows no attributes, re-routed
by a ratio that depends on the two nodes' attribute values alone, and Sec. 5 the same without the sensitive ones:

    P_o(u, v) = P_M(u, v) R(a_uv)        Eq. (3)
    P~(u, v)  = P_M(u, v) R~(a~_uv)      Eq. (4)

Here P_M is Chung-Lu, f_u f_v with f a power law between two ends, or a stochastic Kronecker graph. R is a
product of one table per `Effect` (planted homophily, or the taste of people for items), scaled so that
its P_M-weighted mean is 1: sum P_M R = sum P_M = the edges asked for. R~ of a non-sensitive cell is the
P_M-weighted mean of R in it, so that the sensitive attributes re-route edges within the cell and
leave their expected number as it is, which is what Sec. 5.1 assumes. Both graphs have the same
structure and are drawn independently of one another.

Where P_M R exceeds 1 the probability is 1; such pairs are counted, with the mass that is lost.

Drawing. A pair with P <= 1/2 is proposed a Poisson number of times with mean c P, c = 2 log 2, and each
proposal stays with probability -log(1 - P) / (c P), which is at most 1 there. The number that stays is
Poisson with mean -log(1 - P), so that at least one does with probability P: keeping each pair once
gives exactly Bernoulli(P). Pairs with P > 1/2, at most twice the edges, are listed and drawn
one by one. Time and memory are linear in nodes and edges; no N x N array is ever made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np

from uge_core.arrays import Float64, IntArray
from uge_core.errors import ConfigError
from uge_core.graph.graph import NOT_APPLICABLE, Attribute, AttributedGraph, PlantedTruth, Side
from uge_core.graph.rows import different_rows
from uge_core.registry import unknown_name

StructureName = Literal["chung-lu", "kronecker"]
STRUCTURES: tuple[StructureName, ...] = ("chung-lu", "kronecker")

MAX_GROUPS = 2048
_LIGHT = 0.5
_SLACK = float(2 * np.log(2))  # the largest -log(1 - p) / p for p up to _LIGHT
_CHUNK = 1 << 20
_WIDTH = 6


@dataclass(frozen=True)
class Trait:
    """One attribute that nodes are given, independently of each other, of the other traits and of the structure.

    Attributes:
        name: the attribute.
        labels: its values.
        shares: how likely each value is.
        sensitive: the bias-free graph knows nothing of it.
        side: whose attribute it is.
        ordered: the values have an order.
    """

    name: str
    labels: tuple[str, ...]
    shares: tuple[float, ...]
    sensitive: bool = False
    side: Side = "nodes"
    ordered: bool = False


@dataclass(frozen=True)
class Effect:
    """How two nodes' values change the chance of their edge.

    Attributes:
        first: a trait.
        second: the same trait (homophily, `table` symmetric), or one of the other side (taste).
        table: factor by value of `first` and value of `second`, each above 0.
    """

    first: str
    second: str
    table: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PowerLaw:
    """Density proportional to x^-exponent between 1 and `cap`."""

    exponent: float
    cap: float

    def draw(self, size: int, rng: np.random.Generator) -> Float64:
        """(size,) numbers, by the inverse of the distribution function."""
        power = 1.0 - self.exponent
        return np.asarray((1.0 + rng.random(size) * (self.cap**power - 1.0)) ** (1.0 / power))


@dataclass(frozen=True)
class Recipe:
    """Everything a planted graph is drawn from but its seed.

    Attributes:
        name: the graph's name.
        num_people: the nodes, or the users of a bipartite graph.
        num_edges: the expected number of edges before clipping.
        traits: the attributes.
        effects: the factors of R.
        num_items: items of a bipartite graph; 0: edges join people.
        structure: "chung-lu" or "kronecker".
        activity: Chung-Lu weights of people, up to a factor.
        popularity: those of items.
        initiator: the symmetric 2 x 2 matrix of the Kronecker graph, up to a factor.
    """

    name: str
    num_people: int
    num_edges: int
    traits: tuple[Trait, ...]
    effects: tuple[Effect, ...]
    num_items: int = 0
    structure: StructureName = "chung-lu"
    activity: PowerLaw = PowerLaw(2.6, 12.0)
    popularity: PowerLaw = PowerLaw(2.4, 4.0)
    initiator: tuple[tuple[float, float], tuple[float, float]] = ((0.9, 0.6), (0.6, 0.4))

    def __post_init__(self) -> None:
        if self.structure not in STRUCTURES:
            raise ConfigError(unknown_name("structure", self.structure, STRUCTURES))
        if self.num_people < 2 or self.num_items < 0:
            raise ConfigError(f"{self.name}: {self.num_people} people and {self.num_items} items; at least 2 people")
        pairs = self.num_people * (self.num_items or (self.num_people - 1) / 2)
        if not 1 <= self.num_edges <= pairs / 2:
            raise ConfigError(
                f"{self.name}: {self.num_edges:,} edges asked for among {pairs:,.0f} "
                "pairs; allowed: 1 to half the pairs"
            )
        known = {t.name: t for t in self.traits}
        for t in self.traits:
            if len(t.labels) != len(t.shares) or min(t.shares) <= 0 or abs(sum(t.shares) - 1) > 1e-9:
                raise ConfigError(f"trait {t.name}: one share above 0 per value is needed, 1 in all; found {t.shares}")
            if (t.side == "nodes") == bool(self.num_items):
                raise ConfigError(f"trait {t.name} is of {t.side}; {self.name} has {self.num_items} items")
        for e in self.effects:
            if not {e.first, e.second} <= set(known):
                raise ConfigError(f"effect of {e.first} and {e.second}: the traits are {', '.join(known)}")
            table = np.array(e.table, dtype=float)
            if table.shape != (len(known[e.first].labels), len(known[e.second].labels)) or not (table > 0).all():
                raise ConfigError(f"effect of {e.first} and {e.second}: a factor above 0 per pair of values is needed")
            if self.num_items and (known[e.first].side, known[e.second].side) != ("users", "items"):
                raise ConfigError(
                    f"effect of {e.first} and {e.second}: an effect joins a trait of users and one of items"
                )
            if not self.num_items and (e.first != e.second or not np.array_equal(table, table.T)):
                raise ConfigError(f"effect of {e.first} and {e.second}: one trait and a symmetric table are needed")

    @property
    def num_nodes(self) -> int:
        """N, both sides counted."""
        return self.num_people + self.num_items

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of what the bias-free graph is free of."""
        return tuple(t.name for t in self.traits if t.sensitive)


class Structure(Protocol):
    """P_M: what a structural model is asked for. `u`, `v` are (M,) node numbers."""

    def probability(self, u: IntArray, v: IntArray) -> Float64:
        """(M,) P_M of each pair."""
        ...

    def mass(self, group: IntArray, num_groups: int) -> Float64:
        """(G, G) sum of P_M over ordered pairs of different nodes, by group."""
        ...

    def propose(
        self, rate: float, table: Float64, group: IntArray, rng: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Ordered pairs, each a Poisson number of times with mean rate P_M table[group u, group v], in chunks."""
        ...

    def above(self, limit: float) -> Iterator[tuple[IntArray, IntArray]]:
        """All unordered pairs of different nodes with P_M > limit (and perhaps some below), each once, in chunks."""
        ...


@dataclass(frozen=True, eq=False)
class ChungLu:
    """P_M(u, v) = f_u f_v (Chung and Lu, 2002): f_u is in proportion to the node's expected degree.

    Attributes:
        factor: (N,) f.
    """

    factor: Float64

    def probability(self, u: IntArray, v: IntArray) -> Float64:
        """(M,) P_M of each pair."""
        return np.asarray(self.factor[u] * self.factor[v])

    def mass(self, group: IntArray, num_groups: int) -> Float64:
        """(G, G) S_a S_b, on the diagonal without the pairs of a node with itself."""
        total = np.bincount(group, self.factor, num_groups)
        return np.asarray(np.outer(total, total) - np.diag(np.bincount(group, self.factor**2, num_groups)))

    def propose(
        self, rate: float, table: Float64, group: IntArray, rng: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """A cell by its mass, then one node of each of its groups by f. See `Structure.propose`."""
        k = len(table)
        order = np.argsort(group, kind="stable")
        upto = np.cumsum(self.factor[order])
        last = np.cumsum(np.bincount(group, minlength=k)) - 1
        base = np.concatenate([[0.0], upto[last[:-1]]])
        total = upto[last] - base
        cells = np.cumsum((total[:, None] * total[None, :] * table).ravel())
        first = np.concatenate([[0], last[:-1] + 1])

        def node(of: IntArray) -> IntArray:
            place = np.searchsorted(upto, base[of] + rng.random(len(of)) * total[of], side="right")
            return np.asarray(order[np.clip(place, first[of], last[of])])

        for size in _chunks(int(rng.poisson(rate * cells[-1]))):
            cell = np.searchsorted(cells, rng.random(size) * cells[-1], side="right")
            a, b = np.divmod(np.minimum(cell, k * k - 1), k)
            yield node(a), node(b)

    def above(self, limit: float) -> Iterator[tuple[IntArray, IntArray]]:
        """Nodes in falling order of f: each has its partners before a place that moves back. See `Structure.above`."""
        order = np.argsort(-self.factor, kind="stable")
        falling = self.factor[order]
        # a hair below the limit: the caller looks at each pair again
        partners = np.searchsorted(-falling, -limit * (1 - 1e-9) / falling, side="right")
        partners = np.minimum(partners, np.arange(len(order)))
        yield from _listed(partners, order)


@dataclass(frozen=True, eq=False)
class Kronecker:
    """P_M(u, v) = c prod_i theta[i-th bit of u's place, i-th bit of v's] (Leskovec et al., 2010).

    Attributes:
        initiator: (2, 2) theta, symmetric.
        place: (N,) where each node sits among the 2^levels places, at random.
        levels: number of factors.
        scale: c.
    """

    initiator: Float64
    place: IntArray
    levels: int
    scale: float

    @cached_property
    def blocks(self) -> list[tuple[int, Float64]]:
        """(lowest bit, Kronecker power) of up to `_WIDTH` bits each, so that several are looked up at once."""
        out = []
        for low in range(0, self.levels, _WIDTH):
            power: Float64 = np.ones((1, 1))
            for _ in range(min(_WIDTH, self.levels - low)):
                power = np.asarray(np.kron(power, self.initiator), dtype=np.float64)
            out.append((low, power))
        return out

    def probability(self, u: IntArray, v: IntArray) -> Float64:
        """(M,) P_M of each pair."""
        p, q = self.place[u], self.place[v]
        out = np.full(len(u), self.scale)
        for low, power in self.blocks:
            out *= power[(p >> low) & (len(power) - 1), (q >> low) & (len(power) - 1)]
        return out

    def _times(self, x: Float64) -> Float64:
        """The Kronecker power times a vector, (2^levels,)."""
        for low, power in self.blocks:
            x = (x.reshape(-1, len(power)) @ power if low == 0 else power @ x.reshape(-1, len(power), 1 << low)).ravel()
        return x

    def mass(self, group: IntArray, num_groups: int) -> Float64:
        """(G, G), one product with the Kronecker power for each group. See `Structure.mass`."""
        out = np.empty((num_groups, num_groups))
        for a in range(num_groups):
            x = np.bincount(self.place[group == a], minlength=1 << self.levels).astype(float)
            out[a] = np.bincount(group, self.scale * self._times(x)[self.place], num_groups)
        nodes = np.arange(len(group))
        out -= np.diag(np.bincount(group, self.probability(nodes, nodes), num_groups))
        return np.asarray((out + out.T) / 2)

    def propose(
        self, rate: float, table: Float64, group: IntArray, rng: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """A node by its row's mass, a partner bit by bit, then thinned by the table. See `Structure.propose`."""
        node = self._nodes()
        most = table.max(axis=1)
        rows = np.cumsum(self.scale * self._times(np.ones(1 << self.levels))[self.place] * most[group])
        # P(partner's bits | own bits) upto each value, row after row, so that one search serves all rows
        upto = [
            (
                low,
                len(power),
                (np.cumsum(power / power.sum(1, keepdims=True), 1) + np.arange(len(power))[:, None]).ravel(),
            )
            for low, power in self.blocks
        ]
        for size in _chunks(int(rng.poisson(rate * rows[-1]))):
            u = np.minimum(np.searchsorted(rows, rng.random(size) * rows[-1], side="right"), len(rows) - 1)
            p = self.place[u]
            q = np.zeros(size, np.int64)
            for low, width, cumulated in upto:
                own = (p >> low) & (width - 1)
                bits = np.searchsorted(cumulated, own + rng.random(size), side="right") - own * width
                q |= np.clip(bits, 0, width - 1) << low
            v = node[q]
            g = group[u]
            keep = (rng.random(size) * most[g] < table[g, group[v]]) & (v >= 0)
            yield u[keep], v[keep]

    def _nodes(self) -> IntArray:
        """(2^levels,) the node at each place, -1 where none is."""
        node = np.full(1 << self.levels, -1, np.int64)
        node[self.place] = np.arange(len(self.place))
        return node

    def above(self, limit: float) -> Iterator[tuple[IntArray, IntArray]]:
        """Places bit by bit from the highest, those left out that cannot reach the limit. See `Structure.above`."""
        node = self._nodes()
        p = q = np.zeros(1, np.int64)
        value = np.full(1, self.scale)
        best = float(self.initiator.max())
        for left in range(self.levels - 1, -1, -1):
            grown = [(2 * p + i, 2 * q + j, value * self.initiator[i, j]) for i in (0, 1) for j in (0, 1)]
            p, q, value = (np.concatenate(part) for part in zip(*grown, strict=True))
            keep = (value * best**left > limit * (1 - 1e-9)) & (p <= q)
            p, q, value = p[keep], q[keep], value[keep]
        u, v = node[p], node[q]
        there = (u >= 0) & (v >= 0) & (p < q)
        yield u[there], v[there]


def _chunks(total: int) -> Iterator[int]:
    """Sizes of at most `_CHUNK` that make `total`."""
    for start in range(0, total, _CHUNK):
        yield min(_CHUNK, total - start)


def _listed(partners: IntArray, order: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """The pairs (order[i], order[j]) with j < partners[i], about `_CHUNK` at a time."""
    upto = np.concatenate([[0], np.cumsum(partners)])
    start = 0
    while start < len(partners) and upto[-1] > upto[start]:
        stop = max(start + 1, int(np.searchsorted(upto, upto[start] + _CHUNK, side="right")) - 1)
        count = partners[start:stop]
        i = np.repeat(np.arange(start, stop), count)
        j = np.arange(len(i)) - np.repeat(upto[start:stop] - upto[start], count)
        if len(i):
            yield order[i], order[j]
        start = stop


@dataclass(frozen=True)
class Clipped:
    """Pairs whose P_M R exceeded 1.

    Attributes:
        pairs: how many.
        mass: sum of P_M R - 1 over them: expected edges that are lost.
    """

    pairs: int
    mass: float


def draw_edges(
    structure: Structure, table: Float64, group: IntArray, rng: np.random.Generator
) -> tuple[IntArray, Clipped]:
    """One graph: each pair u < v is an edge with probability min(1, P_M(u, v) table[group u, group v]), exactly.

    Args:
        structure: P_M.
        table: (G, G) symmetric; 0 where no edge can be.
        group: (N,) the group of each node.
        rng: draws.

    Returns:
        (2, E) edges, sorted, smaller end first; and what was clipped.
    """
    n = np.int64(len(group))
    keys: list[IntArray] = []
    over, lost = 0, 0.0
    for u, v in structure.above(_LIGHT / float(table.max())):
        p = structure.probability(u, v) * table[group[u], group[v]]
        heavy = p > _LIGHT
        u, v, p = u[heavy], v[heavy], p[heavy]
        over += int((p > 1).sum())
        lost += float((p[p > 1] - 1).sum())
        drawn = rng.random(len(p)) < p
        keys.append((np.minimum(u, v) * n + np.maximum(u, v))[drawn])
    for u, v in structure.propose(_SLACK / 2, table, group, rng):  # a pair is proposed in both orders
        p = structure.probability(u, v) * table[group[u], group[v]]
        light = (p <= _LIGHT) & (u != v)
        u, v, p = u[light], v[light], p[light]
        stays = rng.random(len(p)) * (_SLACK * p) < -np.log1p(-p)
        keys.append((np.minimum(u, v) * n + np.maximum(u, v))[stays])
    key = np.concatenate(keys) if keys else np.zeros(0, np.int64)
    del keys
    key.sort()
    key = key[np.append(True, key[1:] != key[:-1])[: len(key)]]
    edges = np.empty((2, len(key)), dtype=np.int64)
    np.floor_divide(key, n, out=edges[0])
    np.subtract(key, edges[0] * n, out=edges[1])
    return edges, Clipped(over, lost)


@dataclass(frozen=True, eq=False)
class Planted:
    """An observed graph and all that made it.

    Attributes:
        recipe: what it was drawn from.
        seed: what keyed the draws.
        observed: the graph, its `truth` included.
        bias_free: (2, E~) the edges of the bias-free graph.
        structure: P_M, as factors.
        group: (N,) each node's group: its combination of all attribute values.
        values: (G, number of traits) the values of each group, -1 where the trait is of the other side.
        coarse: (G,) the non-sensitive group of each group.
        scale: R over the product of the effects.
        ratio: (G, G) R; 0 between groups of one side of a bipartite graph.
        bias_free_ratio: (G, G) R~, the same for all groups of one non-sensitive cell.
        clipped: pairs of the observed graph whose P_M R exceeded 1.
        bias_free_clipped: those of the bias-free graph.
    """

    recipe: Recipe
    seed: int
    observed: AttributedGraph
    bias_free: IntArray
    structure: Structure
    group: IntArray
    values: IntArray
    coarse: IntArray
    scale: float
    ratio: Float64
    bias_free_ratio: Float64
    clipped: Clipped
    bias_free_clipped: Clipped

    def probability(self, u: IntArray, v: IntArray, *, bias_free: bool = False) -> Float64:
        """(M,) the chance of an edge between different nodes u and v, Eq. (3), or Eq. (4) for the bias-free graph."""
        table = self.bias_free_ratio if bias_free else self.ratio
        return np.minimum(self.structure.probability(u, v) * table[self.group[u], self.group[v]], 1.0)


def plant(recipe: Recipe, seed: int, *, draw: int = 0) -> Planted:
    """Draws attributes, structure and both graphs.

    Args:
        recipe: what to draw from.
        seed: keys everything.
        draw: another number gives other degrees and edges to the same people with the same attributes.

    Raises:
        ConfigError: the structure would need a probability above 1, or the attributes form too many groups.
    """
    codes = _assign(recipe, np.random.default_rng([seed, 21]))
    side = np.arange(recipe.num_nodes) >= recipe.num_people
    distinct, group = different_rows([side.astype(np.int64), *codes])
    values = distinct[:, 1:]
    if len(values) > MAX_GROUPS:
        raise ConfigError(
            f"{recipe.name}: the traits form {len(values)} groups, allowed: {MAX_GROUPS}; use fewer values"
        )
    across = np.not_equal.outer(distinct[:, 0], distinct[:, 0]) if recipe.num_items else np.ones((len(values),) * 2)
    allowed = across.astype(float)
    structure, mass = _structure(recipe, group, allowed, np.random.default_rng([seed, 22, draw]))
    table = product_of_effects(recipe, values) * allowed
    scale = float(mass.sum() / (mass * table).sum())
    ratio = table * scale
    open_columns = [i for i, t in enumerate(recipe.traits) if not t.sensitive]
    rest = np.concatenate([distinct[:, :1], values[:, open_columns]], axis=1)
    coarse = np.unique(rest, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    bias_free_ratio = _mean_in_cells(ratio, mass, coarse) * allowed
    edges, clipped = draw_edges(structure, ratio, group, np.random.default_rng([seed, 23, draw]))
    free, free_clipped = draw_edges(structure, bias_free_ratio, group, np.random.default_rng([seed, 24, draw]))
    truth = PlantedTruth(free, recipe.sensitive, group, ratio, bias_free_ratio)
    observed = AttributedGraph(
        recipe.name,
        recipe.num_nodes,
        edges,
        tuple(
            Attribute(t.name, np.where(c < 0, NOT_APPLICABLE, c), t.labels, side=t.side, ordered=t.ordered)
            for t, c in zip(recipe.traits, codes, strict=True)
        ),
        node_ids=np.array(node_ids(recipe), dtype=object),
        num_users=recipe.num_people if recipe.num_items else None,
        layout="planted",
        truth=truth,
    )
    return Planted(
        recipe,
        seed,
        observed,
        free,
        structure,
        group,
        values,
        coarse,
        scale,
        ratio,
        bias_free_ratio,
        clipped,
        free_clipped,
    )


def node_ids(recipe: Recipe) -> list[str]:
    """p0001 and on, items t0001 and on; four digits or as many as are needed."""
    width = max(4, len(str(max(recipe.num_people, recipe.num_items))))
    people = [f"p{i:0{width}}" for i in range(1, recipe.num_people + 1)]
    return people + [f"t{i:0{width}}" for i in range(1, recipe.num_items + 1)]


def _assign(recipe: Recipe, rng: np.random.Generator) -> list[IntArray]:
    """(N,) codes of each trait, -1 for the other side."""
    out = []
    for t in recipe.traits:
        low, high = (recipe.num_people, recipe.num_nodes) if t.side == "items" else (0, recipe.num_people)
        codes = np.full(recipe.num_nodes, -1, np.int64)
        drawn = np.searchsorted(np.cumsum(t.shares), rng.random(high - low), side="right")
        codes[low:high] = np.minimum(drawn, len(t.labels) - 1)
        out.append(codes)
    return out


def _structure(
    recipe: Recipe, group: IntArray, allowed: Float64, rng: np.random.Generator
) -> tuple[Structure, Float64]:
    """The structural model, scaled so that P_M sums to the edges asked for over the pairs that can be edges.

    Its mass.
    """
    wanted = 2.0 * recipe.num_edges  # ordered pairs
    if recipe.structure == "kronecker":
        theta = np.array(recipe.initiator, dtype=float)
        if not np.array_equal(theta, theta.T) or theta.min() < 0 or theta.max() <= 0:
            raise ConfigError(
                f"{recipe.name}: initiator {recipe.initiator} is not allowed; a symmetric one, none below 0"
            )
        levels = int(np.ceil(np.log2(recipe.num_nodes)))
        place = rng.permutation(1 << levels)[: recipe.num_nodes]
        unscaled = Kronecker(theta, place, levels, 1.0)
        mass = unscaled.mass(group, len(allowed)) * allowed
        scale = wanted / float(mass.sum())
        _check_top(recipe, scale * float(theta.max()) ** levels, "flatter initiator")
        return replace(unscaled, scale=scale), mass * scale
    weight = np.concatenate(
        [recipe.activity.draw(recipe.num_people, rng), recipe.popularity.draw(recipe.num_items, rng)]
    )
    mass = ChungLu(weight).mass(group, len(allowed)) * allowed
    scale = wanted / float(mass.sum())
    factor = weight * np.sqrt(scale)
    people, items = np.sort(factor[: recipe.num_people]), factor[recipe.num_people :]
    _check_top(recipe, float(people[-1] * (items.max() if len(items) else people[-2])), "lower cap")
    return ChungLu(factor), mass * scale


def _check_top(recipe: Recipe, top: float, way_out: str) -> None:
    """Refuses a structure with a probability above 1."""
    if top > 1:
        raise ConfigError(
            f"{recipe.name}: {recipe.num_edges:,} edges need a structural "
            f"probability of {top:.2f} between hubs, allowed: "
            f"1; use fewer edges, more nodes or a {way_out}"
        )


def product_of_effects(recipe: Recipe, values: IntArray) -> Float64:
    """(G, G) the product of all effects' factors, R up to its scale; both orders of a bipartite pair alike.

    Args:
        recipe: its traits and effects.
        values: (G, number of traits) of each group, -1 where the trait is of the other side.
    """
    position = {t.name: i for i, t in enumerate(recipe.traits)}
    out = np.ones((len(values), len(values)))
    for e in recipe.effects:
        first, second = values[:, position[e.first]], values[:, position[e.second]]
        factor = np.array(e.table)[first[:, None], second[None, :]]
        if recipe.num_items:
            user_first = (first[:, None] >= 0) & (second[None, :] >= 0)
            factor = np.where(user_first, factor, np.where(user_first.T, factor.T, 1.0))
        out *= factor
    return out


def _mean_in_cells(ratio: Float64, mass: Float64, coarse: IntArray) -> Float64:
    """(G, G) the P_M-weighted mean of R in each non-sensitive cell; 0 where no pair is."""
    k = int(coarse.max()) + 1
    cell = (coarse[:, None] * k + coarse).ravel()
    total, weight = (np.bincount(cell, t.ravel(), k * k).reshape(k, k) for t in (ratio * mass, mass))
    mean = np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
    return np.asarray(((mean + mean.T) / 2)[np.ix_(coarse, coarse)])


def homophily(same: Sequence[float], other: float) -> tuple[tuple[float, ...], ...]:
    """A table with `same[g]` within group g and `other` between groups."""
    return tuple(tuple(s if i == j else other for j in range(len(same))) for i, s in enumerate(same))


def nearness(size: int, same: float, step: float) -> tuple[tuple[float, ...], ...]:
    """A table for ordered groups: `same` within a group, times `step` for each group between."""
    return tuple(tuple(same * step ** abs(i - j) for j in range(size)) for i in range(size))
