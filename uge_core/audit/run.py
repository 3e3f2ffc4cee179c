"""One audit: every metric of one embedding on one graph, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.audit import leakage, ndcg, parity
from uge_core.audit.base import METRICS, Audit, Cell, Row
from uge_core.audit.leakage import ATTACKERS, Estimate, Prediction
from uge_core.audit.ndcg import BiasFree
from uge_core.errors import ConfigError
from uge_core.graph import Attribute, AttributedGraph, FloatArray, IntArray
from uge_core.registry import unknown_name
from uge_core.split import LinkSplit, ProbeSplit, RankingTask, probe_classes, probe_split, ranking_task

Floors = MutableMapping[str, Any]

POLICIES = ("level", "exclude", "impute")
LEAKAGE_VERSION = 1  # counts up when an attacker changes, so that kept floors are measured anew
_LARGEST = 1e18  # a larger coordinate overflows float32 dot products


def audit_embedding(
    embedding: FloatArray,
    graph: AttributedGraph,
    split: LinkSplit | None,
    *,
    attributes: Sequence[str] | None = None,
    unknown: Mapping[str, str] | str | None = None,
    split_seed: int = 0,
    attackers: Sequence[str] = ATTACKERS,
    treated: Sequence[str] = (),
    read: Sequence[str] = (),
    twin: FloatArray | None = None,
    bias_free: Mapping[str, BiasFree] | None = None,
    calibrated: bool = True,
    notes: Mapping[str, str] | None = None,
    twin_notes: Mapping[str, str] | None = None,
    floors: Floors | None = None,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Audit:
    """Measures leakage, link quality and group differences of an embedding.

    Leakage and NDCG are about people: all nodes, on a bipartite graph the users.

    Args:
        embedding: (N, d) the embedding as it would be handed out.
        graph: the graph it embeds.
        split: which edges training did not see; None when nobody knows. Then there is no held-out
            NDCG, and EO covers all edges.
        attributes: names of those to audit; None: all attributes of people.
        unknown: what a missing value is, for all attributes or by name: "level" makes it a value of
            its own; "exclude" and "impute" leave the node out. None: the graph's own default.
        split_seed: keys the probe's split, the candidate lists and the random floor.
        attackers: some of "linear", "trees".
        treated: the attributes that training tried to remove.
        read: the attributes whose values training read: rows about them, and about link quality, are
            "seen" unless they are the twin's.
        twin: (N, d) the same training without the tested nodes' values of the treated attributes:
            gives the "unseen" rows of their leakage, and of NDCG.
        bias_free: by name of what the graph is freed of ("region", "gender+region"), what each
            held-out edge counts; a row `ndcg_at_10_bias_free` each.
        calibrated: the sigmoid of a score is a probability; False under BPR, and the rows say so.
        notes: by attribute, a remark for the embedding's rows.
        twin_notes: the same for the twin's rows.
        floors: kept between audits of one sweep, so that random embeddings are attacked once.
        seed: keys resampling and the order of ties.
        progress: called with what is being done and the share done.

    Returns:
        The audit. Its shape depends on the graph, not on the values: what cannot be measured is a
        row with ``evidence`` "insufficient".

    Raises:
        ConfigError: the embedding does not fit the graph or is not finite, or a name is unknown.
        GraphError: the graph has no such attribute.
    """
    job = _Job(
        graph,
        split,
        _checked(embedding, graph, "embedding"),
        None if twin is None else _checked(twin, graph, "twin"),
        _attributes(graph, attributes),
        _policies(graph, unknown),
        split_seed,
        tuple(attackers),
        frozenset(graph.attribute(name).name for name in treated),
        frozenset(graph.attribute(name).name for name in read),
        dict(bias_free or {}),
        calibrated,
        _by_name(graph, notes),
        _by_name(graph, twin_notes),
        {} if floors is None else floors,
        seed,
    )
    for name in attackers:
        if name not in ATTACKERS:
            raise ConfigError(unknown_name("attacker", name, ATTACKERS))
    if twin is not None and not read:
        raise ConfigError(
            "a twin was given with no attribute read; only a method that reads attributes has unseen rows"
        )
    for name, gains in job.bias_free.items():
        if split is None or np.shape(gains.weight) != (split.test.shape[1],):
            raise ConfigError(
                f"bias_free[{name!r}] has shape {np.shape(gains.weight)}; one weight per held-out edge is needed, "
                f"{0 if split is None else split.test.shape[1]} here"
            )
    # Shares of the time a large graph takes; attacking is most of it.
    steps: list[tuple[str, float, Callable[[Callable[[float], None]], list[Row]]]] = [
        (f"leakage of {a.name}", 1.0, partial(_leakage_rows, job, a)) for a in job.attributes
    ]
    steps.append(("link quality", 1.0, lambda step: _ndcg_rows(job)))
    steps.append(("differences between groups", 2.0, partial(_parity_rows, job)))
    total, done = sum(s[1] for s in steps), 0.0
    rows: list[Row] = []
    for what, share, measure in steps:

        def step(part: float, what: str = what, share: float = share, done: float = done) -> None:
            if progress is not None:
                progress(what, (done + share * part) / total)

        step(0.0)
        rows += measure(step)
        done += share
    if progress is not None:
        progress("audit done", 1.0)
    return Audit(tuple(rows))


@dataclass(frozen=True, eq=False)
class _Job:
    """What one audit was asked, checked and with names resolved."""

    graph: AttributedGraph
    split: LinkSplit | None
    embedding: FloatArray
    twin: FloatArray | None
    attributes: tuple[Attribute, ...]
    policies: Mapping[str, str]
    split_seed: int
    attackers: tuple[str, ...]
    treated: frozenset[str]
    read: frozenset[str]
    bias_free: Mapping[str, BiasFree]
    calibrated: bool
    notes: Mapping[str, str]
    twin_notes: Mapping[str, str]
    floors: Floors
    seed: int

    @property
    def exposure(self) -> str | None:
        """That of rows about no attribute."""
        return "seen" if self.read else None

    def exposure_of(self, attribute: str) -> str | None:
        """Whether training read this attribute's values."""
        return "seen" if attribute in self.read else None


def _checked(embedding: npt.NDArray[Any], graph: AttributedGraph, name: str) -> FloatArray:
    """The embedding as float32, refused with a reason where it cannot be one of this graph."""
    z = np.asarray(embedding)
    if z.ndim != 2 or z.shape[0] != graph.num_nodes or z.shape[1] == 0:
        raise ConfigError(f"{name} has shape {z.shape}; {graph.name} needs ({graph.num_nodes}, d), a row per node")
    if not np.issubdtype(z.dtype, np.number) or np.issubdtype(z.dtype, np.complexfloating):
        raise ConfigError(f"{name} holds {z.dtype}, real numbers are needed")
    bad = np.nonzero(~np.isfinite(z).all(axis=1))[0]
    if len(bad):
        raise ConfigError(
            f"{name} has {len(bad)} rows that are not finite numbers, first node {graph.ids([int(bad[0])])[0]}; "
            "mend or drop them first"
        )
    if z.size and np.abs(z).max() > _LARGEST:
        raise ConfigError(f"{name} has numbers up to {np.abs(z).max():.3g}, allowed: {_LARGEST:g}; scale it down first")
    return np.ascontiguousarray(z, dtype=np.float32)


def _attributes(graph: AttributedGraph, names: Sequence[str] | None) -> tuple[Attribute, ...]:
    """The attributes to audit, each once."""
    if names is None:
        return graph.audited
    found = {a.name: a for a in map(graph.attribute, names)}
    for a in found.values():
        if a.side == "items":
            raise ConfigError(f"{a.name} is an attribute of items; an audit is about people")
    return tuple(found.values())


def _policies(graph: AttributedGraph, unknown: Mapping[str, str] | str | None) -> dict[str, str]:
    """The policy for missing values of every attribute of people."""
    policies: dict[str, str] = {a.name: graph.defaults.unknown for a in graph.audited}
    if isinstance(unknown, str):
        policies = dict.fromkeys(policies, unknown)
    elif unknown is not None:
        policies.update({graph.attribute(name).name: policy for name, policy in unknown.items()})
    for policy in policies.values():
        if policy not in POLICIES:
            raise ConfigError(unknown_name("policy for missing values", policy, POLICIES))
    return policies


def _by_name(graph: AttributedGraph, notes: Mapping[str, str] | None) -> dict[str, str]:
    """Remarks under the graph's spelling of each attribute."""
    return {graph.attribute(name).name: text for name, text in (notes or {}).items()}


def _row(metric: str, estimate: Estimate, *notes: str | None, ci_kind: str | None = "nodes", **values: Any) -> Row:
    """A row from an estimate, with the metric's direction and the remarks joined."""
    ok = estimate.value is not None and bool(np.isfinite(estimate.value))
    return Row(
        metric,
        value=estimate.value if ok else None,
        ci_low=estimate.low,
        ci_high=estimate.high,
        ci_kind=ci_kind if estimate.low is not None else None,
        direction=METRICS[metric].direction,
        evidence="ok" if ok else "insufficient",
        note="; ".join(n for n in (estimate.note, *notes) if n) or None,
        **values,
    )


# Leakage


def _leakage_rows(job: _Job, attribute: Attribute, step: Callable[[float], None]) -> list[Row]:
    """All attacks on one attribute."""
    probe = probe_split(attribute, unknown=job.policies[attribute.name], seed=job.split_seed)
    members: list[tuple[str | None, FloatArray]] = [(job.exposure_of(attribute.name), job.embedding)]
    if job.twin is not None and attribute.name in job.treated:
        members.append(("unseen", job.twin))
    rows: list[Row] = []
    fits = len(members) * len(job.attackers)
    for exposure, embedding in members:
        mine: list[Row] = []
        for attacker in job.attackers:
            mine += _attack_rows(job, attribute, probe, attacker, "standard", exposure, embedding)
            step(len(rows + mine) / (3 * fits + 3))
        rows += mine
        rows += [_worst(mine, metric) for metric in ("auc", "micro_f1", "balanced_accuracy")] if mine else []
    first = job.graph.defaults.as_coded_rows
    if first is not None and "linear" in job.attackers:
        classes, labels = probe_classes(attribute, "level")
        taking_part = np.nonzero(classes >= 0)[0]
        as_coded = ProbeSplit(taking_part[taking_part < first], taking_part[taking_part >= first], classes, labels)
        found = _attack_rows(
            job, attribute, as_coded, "linear", "as-coded", job.exposure_of(attribute.name), job.embedding
        )
        rows += [r for r in found if r.metric == "micro_f1"]
    return rows


def _attack_rows(
    job: _Job,
    attribute: Attribute,
    probe: ProbeSplit,
    attacker: str,
    variant: str,
    exposure: str | None,
    embedding: FloatArray,
) -> list[Row]:
    """The three measures of one attack beside their floors."""
    scaled = variant == "standard"

    def predict(z: FloatArray) -> Prediction | None:
        return leakage.attack(
            z, probe.classes, probe.train, probe.test, attacker=attacker, standardise=scaled, seed=job.split_seed
        )

    found = leakage.measure(predict(embedding), probe.labels, seed=job.seed)
    floor: Mapping[str, float | None] = {}
    if any(e.value is not None for e in found.values()):
        policy = job.policies[attribute.name] if scaled else "level"
        dim = embedding.shape[1]
        key = f"{LEAKAGE_VERSION}/{job.graph.fingerprint}/{attribute.name}/{policy}/{job.split_seed}/{dim}/{attacker}/{variant}"
        if key not in job.floors:
            random = leakage.random_embedding(job.graph.num_nodes, dim, seed=job.split_seed)
            measured = leakage.measure(predict(random), probe.labels, seed=job.seed)
            job.floors[key] = {metric: e.value for metric, e in measured.items()}
        floor = job.floors[key]
    tested = len(np.unique(probe.classes[probe.test]))
    majority: dict[str, float | None] = {
        "micro_f1": leakage.majority_rate(probe.classes, probe.train, probe.test),
        "balanced_accuracy": 1.0 / tested if tested else None,
        "auc": 0.5,
    }
    remark = None if scaled else f"as coded: raw inputs, the first {len(probe.train)} rows train, missing is a value"
    return [
        _row(
            metric,
            estimate,
            remark,
            (job.twin_notes if exposure == "unseen" else job.notes).get(attribute.name),
            attribute=attribute.name,
            attacker=attacker,
            variant=variant,
            exposure=exposure,
            n=len(probe.test),
            floor_random=floor.get(metric),
            floor_majority=majority[metric] if estimate.value is not None else None,
        )
        for metric, estimate in found.items()
    ]


def _worst(rows: list[Row], metric: str) -> Row:
    """The strongest attacker's row: the largest Micro-F1, or the AUC farthest from .5 (one may invert it)."""
    mine = [r for r in rows if r.metric == metric]
    measured = [r for r in mine if r.value is not None]
    if not measured:
        return replace(mine[0], attacker="worst")
    worst = max(measured, key=lambda r: abs((r.value or 0.0) - (0.5 if metric == "auc" else 0.0)))
    return replace(
        worst, attacker="worst", note="; ".join(filter(None, (f"worst attacker: {worst.attacker}", worst.note)))
    )


# Link quality


def _ndcg_rows(job: _Job) -> list[Row]:
    """Held-out, bias-free, planted-truth and as-coded NDCG@10."""
    graph = job.graph
    rows: list[Row] = []
    members: list[tuple[str | None, FloatArray]] = [(job.exposure, job.embedding)]
    if job.twin is not None:
        members.append(("unseen", job.twin))
    if job.split is None:
        unknown = Estimate(None, note="no edges are known to be held out of training")
        rows.append(_row("ndcg_at_10", unknown, variant="held-out", exposure=job.exposure, n=0))
    else:
        task = ranking_task(graph, job.split.test, seed=job.split_seed)
        for exposure, embedding in members:
            ranking = ndcg.rank_candidates(embedding, task, seed=job.seed)
            rows.append(_ranked("ndcg_at_10", job, task, ranking, None, variant="held-out", exposure=exposure))
            for name, given in job.bias_free.items():
                gains = ndcg.edge_gains(ranking, task, graph, job.split.test, given.weight)
                rows.append(
                    _ranked(
                        "ndcg_at_10_bias_free",
                        job,
                        task,
                        ranking,
                        gains,
                        given.note,
                        attribute=name,
                        variant="held-out",
                        exposure=exposure,
                    )
                )
    if graph.truth is not None:
        task = ndcg.planted_task(graph, seed=job.split_seed)
        remark = (
            f"ranks the edges of the bias-free graph, free of {', '.join(graph.truth.sensitive)}, "
            "that are not in the observed one"
        )
        for exposure, embedding in members:
            ranking = ndcg.rank_candidates(embedding, task, seed=job.seed)
            rows.append(
                _ranked("ndcg_at_10", job, task, ranking, None, remark, variant="planted-truth", exposure=exposure)
            )
    if not graph.bipartite:
        task = ndcg.as_coded_task(graph, seed=job.split_seed)
        ranking = ndcg.rank_candidates(job.embedding, task, seed=job.seed)
        remark = (
            "as coded: ranks the first tenth plus one of all neighbours, most of them edges that training saw; "
            "not a measure of prediction"
        )
        rows.append(_ranked("ndcg_at_10", job, task, ranking, None, remark, variant="as-coded", exposure=job.exposure))
    return rows


def _ranked(
    metric: str,
    job: _Job,
    task: RankingTask,
    ranking: ndcg.Ranking,
    gains: ndcg.EdgeGains | None,
    *notes: str | None,
    **values: Any,
) -> Row:
    """A row of NDCG@10, weighted where `gains` are given, beside a random order of the same lists."""
    num = len(task.targets)
    gain = np.ones(len(ranking.rank)) if gains is None else gains.gain
    weight = np.ones(num) if gains is None else gains.target_weight
    value = ndcg.ndcg_per_target(ranking, gain, num)
    # a list in which everything is relevant is ranked right by any order
    contested = ((task.candidates >= 0) & ~task.relevant).any(axis=1)
    keep = np.isfinite(value) & (weight > 0) & contested
    counted = int(keep.sum())
    if counted < ndcg.MIN_TARGETS:
        few = Estimate(
            None,
            note=f"{counted} nodes have edges to rank among strangers, at least {ndcg.MIN_TARGETS} are needed",
        )
        return _row(metric, few, *notes, n=counted, **values)
    mean, low, high = ndcg.weighted_mean(value[keep], weight[keep], seed=job.seed)
    chance = ndcg.random_ndcg_per_target(task, ranking, gain)
    floor = float(np.average(chance[keep], weights=weight[keep]))
    return _row(metric, Estimate(mean, low, high), *notes, n=counted, floor_random=floor, **values)


# Differences between groups


def _parity_rows(job: _Job, step: Callable[[float], None]) -> list[Row]:
    """DP and EO of the embedding as it is handed out."""
    grouped = {a.name: probe_classes(a, job.policies[a.name]) for a in job.attributes}
    groups = {name: codes for name, (codes, _) in grouped.items()}
    if not groups:
        return []
    dp = parity.dp_cells(job.embedding, job.graph, groups, seed=job.seed, progress=step)
    edges = job.graph.edges if job.split is None else job.split.test
    eo = parity.eo_cells(job.embedding, job.graph, groups, edges)
    seen_edges = None if job.split is not None else "over all edges, which training may have seen"
    rows = []
    for name, (_, labels) in grouped.items():
        rows.append(_gap_row(job, "dp", name, labels, dp[name], parity.MIN_PAIRS, None, None))
        variant = "all-edges" if job.split is None else "held-out"
        rows.append(_gap_row(job, "eo", name, labels, eo[name], parity.MIN_EDGES, variant, seen_edges))
    return rows


def _gap_row(
    job: _Job,
    metric: str,
    name: str,
    labels: tuple[str, ...],
    table: parity.CellTable,
    minimum: int,
    variant: str | None,
    remark: str | None,
) -> Row:
    """One gap with its cells; the note names the two that make it."""
    cells = tuple(_cells(table, labels, minimum))
    found = parity.gap(table, minimum)
    unit = "pairs" if metric == "dp" else "edges"
    few = sum(c.excluded for c in cells)
    notes: list[str | None] = []
    if found.highest is not None and found.lowest is not None:
        top, bottom = cells[found.highest], cells[found.lowest]
        notes.append(
            f"highest {top.name} {top.value:.3g} ({top.n:,} {unit}), lowest {bottom.name} {bottom.value:.3g} ({bottom.n:,} {unit})"
        )
    else:
        notes.append(f"fewer than two cells have {minimum} {unit}")
    if few:
        notes.append(f"{few} of {len(cells)} cells with under {minimum} {unit} left out")
    if table.se is not None and np.isfinite(table.se).any():
        notes.append(
            f"from a sample of the pairs of each cell, largest standard error of a cell {np.nanmax(table.se):.1g}"
        )
    if not job.calibrated:
        notes.append("BPR: the sigmoid of the score has no calibration")
    return _row(
        metric,
        Estimate(found.value),
        *notes,
        remark,
        job.notes.get(name),
        attribute=name,
        variant=variant,
        exposure=job.exposure,
        n=sum(c.n for c in cells if not c.excluded),
        cells=cells,
    )


def _cells(table: parity.CellTable, labels: tuple[str, ...], minimum: int) -> Iterator[Cell]:
    """The cells of a table by name."""
    seconds: IntArray | list[None] = [None] * len(table.a) if table.b is None else table.b
    for a, b, mean, n in zip(table.a, seconds, table.mean, table.n, strict=True):
        value = float(mean) if n else None
        yield Cell(labels[a], None if b is None else labels[b], value, int(n), excluded=bool(n < minimum))
