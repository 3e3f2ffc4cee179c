"""Rows of differences between groups: demographic parity and equalized opportunity."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from uge_core.audit import parity
from uge_core.audit.base import Cell, Row
from uge_core.audit.job import Job, make_row
from uge_core.audit.leakage import Estimate
from uge_core.graph import IntArray
from uge_core.split import probe_classes


def parity_rows(job: Job, step: Callable[[float], None]) -> list[Row]:
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
    job: Job,
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
    return make_row(
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
