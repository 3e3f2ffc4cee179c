"""One audit: every metric of one embedding on one graph, as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import FloatArray
from uge_core.audit import crossing
from uge_core.audit.base import Audit, Row
from uge_core.audit.disclosure import Disclosure, Everybody
from uge_core.audit.job import AuditRequest, Floors
from uge_core.audit.leakage import DEFAULT_ATTACKERS
from uge_core.audit.leakage_rows import leakage_rows
from uge_core.audit.link_rows import link_rows
from uge_core.audit.ndcg import BiasFree
from uge_core.audit.parity_rows import parity_rows
from uge_core.audit.sampling import Sampling
from uge_core.audit.usable import usable_rows
from uge_core.errors import ConfigError
from uge_core.graph.graph import Attribute, AttributedGraph
from uge_core.graph.scores import LARGEST, scorer
from uge_core.graph.split import LinkSplit
from uge_core.graph.values import missing_policies
from uge_core.registry import find

PARTS = ("leakage", "links", "parity")


def audit_embedding(
    embedding: FloatArray,
    graph: AttributedGraph,
    split: LinkSplit | None,
    *,
    attributes: Sequence[str] | None = None,
    unknown: Mapping[str, str] | str | None = None,
    split_seed: int = 0,
    attackers: Sequence[str] = DEFAULT_ATTACKERS,
    crossings: Sequence[str] | bool = False,
    treated: Sequence[str] = (),
    read: Sequence[str] = (),
    twin: FloatArray | None = None,
    bias_free: Mapping[str, BiasFree] | None = None,
    calibrated: bool = True,
    score: str = "dot",
    notes: Mapping[str, str] | None = None,
    twin_notes: Mapping[str, str] | None = None,
    floors: Floors | None = None,
    seed: int = 0,
    parts: Sequence[str] = PARTS,
    quick: bool = False,
    threshold: float | None = None,
    disclosure: Disclosure | None = None,
    sampling: Sampling | None = None,
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
        attackers: names from ``registry.names("audit.attackers")``.
        crossings: pairs of attributes whose leakage is measured together, as "region+gender"; True:
            all pairs of those audited. Their rows are the embedding's, none the twin's.
        treated: the attributes that training tried to remove.
        read: the attributes whose values training read: rows about them, and about link quality, are
            "seen" unless they are the twin's.
        twin: (N, d) the same training without the tested nodes' values of the treated attributes:
            gives the "unseen" rows of their leakage, and of NDCG.
        bias_free: by name of what the graph is freed of ("region", "gender+region"), what each
            held-out edge counts; a row `ndcg_at_10_bias_free` each.
        calibrated: the sigmoid of a score is trained as the chance of a link; False under BPR, say, and the rows say
            so.
        score: of a pair of nodes, a name that `scores.scorer` knows, for NDCG, DP and EO; leakage is of the vectors as
            they are.
        notes: by attribute, a remark for the embedding's rows.
        twin_notes: the same for the twin's rows.
        floors: kept between audits of one sweep, so that random embeddings are attacked once.
        seed: keys resampling and the order of ties.
        parts: what to measure, of `PARTS`.
        quick: no permutation test, no probe as coded, no DP and EO of the test set, and above 20,000 nodes DP on a
            sample of the pairs.
        threshold: DP and EO count links predicted at this probability and more, in place of the mean probability.
        disclosure: who is left out, so that counts point at nobody; None: nobody, and the figures are exact.
        sampling: how many people figures are measured on; None: at most `sampling.MOST_PEOPLE`.
        progress: called with what is being done and the share done.

    Returns:
        The audit. Its shape depends on the graph, not on the values: what cannot be measured is a
        row with ``evidence`` "insufficient".

    Raises:
        ConfigError: the embedding does not fit the graph or is not finite, or a name is unknown.
        GraphError: the graph has no such attribute.
    """
    job = AuditRequest(
        graph,
        split,
        checked_embedding(embedding, graph, "embedding"),
        None if twin is None else checked_embedding(twin, graph, "twin"),
        _attributes(graph, attributes),
        missing_policies(graph, unknown),
        split_seed,
        tuple(attackers),
        frozenset(graph.attribute(name).name for name in treated),
        frozenset(graph.attribute(name).name for name in read),
        dict(bias_free or {}),
        calibrated,
        scorer(score),
        _by_name(graph, notes),
        _by_name(graph, twin_notes),
        {} if floors is None else floors,
        seed,
        quick,
        threshold,
        Everybody() if disclosure is None else disclosure,
        sampling or Sampling(),
    )
    for name in attackers:
        find("audit.attackers", name)
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
        (f"leakage of {a.name}", 1.0, partial(leakage_rows, job, a)) for a in job.attributes
    ]
    jobs = [job]
    for a, b in crossing.pairs(graph, crossings, job.attributes):
        both, left_out = crossing.cross(a, b, graph, job.policies, job.disclosure)
        apart = replace(
            job,
            # Part of the floor's name; what is missing is in the codes already.
            policies={both.name: f"{job.policies[a.name]}+{job.policies[b.name]}"},
            read=frozenset({both.name} if {a.name, b.name} & job.read else ()),
            notes={both.name: left_out} if left_out else {},
        )
        steps.append((f"leakage of {both.name}", 1.0, partial(leakage_rows, apart, both)))
        jobs.append(apart)
    steps = steps if "leakage" in parts else []
    if "links" in parts:
        steps.append(("link quality", 1.0, lambda step: _usable_first(job)))
    if "parity" in parts:
        steps.append(("differences between groups", 2.0, partial(parity_rows, job)))
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
    few = {name: words for part in jobs for name, words in part.left_out.items()}
    return Audit(tuple(_said(row, job.scorer.note, few) for row in rows))


def _usable_first(job: AuditRequest) -> list[Row]:
    """Rows of link quality, led by whether there is any."""
    rows = link_rows(job)
    return [*usable_rows(job, rows), *rows]


def _said(row: Row, note: str | None, left_out: Mapping[str, str]) -> Row:
    """The row with remarks on scores, where it is about them, and on who is left out of it."""
    about_scores = row.attacker is None and row.metric != "usable"
    remarks = (row.note, note if about_scores else None, left_out.get(row.attribute or ""))
    return replace(row, note="; ".join(filter(None, remarks)) or None)


def checked_embedding(embedding: npt.NDArray[Any], graph: AttributedGraph, name: str) -> FloatArray:
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
    if z.size and np.abs(z).max() > LARGEST:
        raise ConfigError(f"{name} has numbers up to {np.abs(z).max():.3g}, allowed: {LARGEST:g}; scale it down first")
    return np.ascontiguousarray(z, dtype=np.float32)


def _attributes(graph: AttributedGraph, names: Sequence[str] | None) -> tuple[Attribute, ...]:
    """The attributes to audit, each once."""
    if names is None:
        return graph.audited
    by_name = {a.name: a for a in map(graph.attribute, names)}
    for a in by_name.values():
        if a.side == "items":
            raise ConfigError(f"{a.name} is an attribute of items; an audit is about people")
    return tuple(by_name.values())


def _by_name(graph: AttributedGraph, notes: Mapping[str, str] | None) -> dict[str, str]:
    """Remarks under the graph's spelling of each attribute."""
    return {graph.attribute(name).name: text for name, text in (notes or {}).items()}
