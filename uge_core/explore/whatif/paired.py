"""A run and one trained on a scenario of its graph, compared on the same people and the same held-out links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from uge_core.audit.compare import Compared, compare_embeddings
from uge_core.errors import ConfigError
from uge_core.explore.comparison import compare_record
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import split_links
from uge_core.graph.values import missing_policies
from uge_core.runs.audits import attributes_read
from uge_core.runs.data import check_data
from uge_core.runs.disclosure import release
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig


def compare_runs(
    a: StoredRun,
    b: StoredRun,
    graph: AttributedGraph,
    edited: AttributedGraph,
    attackers: Sequence[str],
    *,
    store: RunStore | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Differences A - B as a `uge-compare/1` record, with `note`s on what could not be paired.

    Both are measured with the values of the edited graph, and rank the links held out of both trainings, which
    the two graphs' common split gives.

    Args:
        a: a run on `graph`.
        b: a run on `edited`.
        graph: the graph as it is.
        edited: what a scenario makes of it.
        attackers: which attackers to try.
        store: what its ledger says was told before is told again.
        progress: told what is being done.

    Raises:
        ConfigError: the two were trained on different splits or treat missing values differently.
    """
    check_data(a, graph)
    check_data(b, edited)
    first, second = (RunConfig.from_json(run.config) for run in (a, b))
    for field in ("split_seed", "test_share", "validation", "unknown"):
        one, other = getattr(first, field), getattr(second, field)
        if one != other:
            raise ConfigError(
                f"run {a.id} has {field} = {one}, {b.id} has {other}; "
                "a paired comparison needs the same people and links"
            )
    changed = edited_attributes(graph, edited)
    notes = []
    sides = []
    for run, config in ((a, first), (b, second)):
        twin = None if run.twin is None else np.asarray(run.twin)
        if twin is not None and changed & set(config.sensitive):
            twin = None
            notes.append(
                f"{', '.join(sorted(changed & set(config.sensitive)))} was edited, so the twins did not miss the "
                "same people's values; "
                "only what is read from the exported embeddings is compared"
            )
        sides.append(
            Compared(
                np.asarray(run.embedding),
                twin,
                frozenset(config.sensitive),
                frozenset(attributes_read(config, graph)),
                config.score,
            )
        )
    split = split_links(edited, test_share=first.test_share, validation_share=first.validation, seed=first.split_seed)
    comparison = compare_embeddings(
        sides[0],
        sides[1],
        replace(edited, base=None),
        split,
        unknown=first.unknown,
        split_seed=first.split_seed,
        attackers=attackers,
        disclosure=release(edited, missing_policies(edited, first.unknown), store),
        progress=progress,
    )
    return compare_record(comparison, b.dataset, {a.id: a.config}, {b.id: b.config}) | {"notes": sorted(set(notes))}


def edited_attributes(graph: AttributedGraph, edited: AttributedGraph) -> set[str]:
    """The attributes of people whose values a scenario changed; where they were treated, twins are not compared."""
    pairs = zip(graph.audited, edited.audited, strict=True)
    return {x.name for x, y in pairs if x is not y and not np.array_equal(x.codes, y.codes)}
