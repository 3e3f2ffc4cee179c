"""Rows of leakage: every attacker on every attribute, and the strongest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from uge_core.audit import leakage
from uge_core.audit.base import Row
from uge_core.audit.job import Job, make_row
from uge_core.audit.leakage import Prediction
from uge_core.graph import Attribute, FloatArray
from uge_core.split import ProbeSplit, probe_classes, probe_split

LEAKAGE_VERSION = 1  # counts up when an attacker changes, so that kept floors are measured anew


def leakage_rows(job: Job, attribute: Attribute, step: Callable[[float], None]) -> list[Row]:
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
    job: Job,
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
        make_row(
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
