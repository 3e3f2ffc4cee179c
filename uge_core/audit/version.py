"""Which version of the audit measured a record, and what later ones measure otherwise.

A record keeps the version that made it. Whoever measures it anew with a later one compares what both measure alike,
and says the rest: a metric that is new makes no old record differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from uge_core.audit.metrics import METRICS

FIRST = 3
"""The version when `config.ENGINE` counted up last: no run of this engine was measured by an earlier one."""


@dataclass(frozen=True)
class Change:
    """What a version of the audit does to some rows.

    Attributes:
        version: the first that does.
        words: what it does.
        kind: "figures": measures them otherwise; "added": they are new; "dropped": it no longer measures them; "drawn":
            measures fewer people unless asked for all, as whoever measures an earlier record anew does.
        metrics: of these rows; empty: any.
        attackers: by these; empty: any.
        variants: in these; empty: any.
    """

    version: int
    words: str
    kind: Literal["figures", "added", "dropped", "drawn"] = "figures"
    metrics: tuple[str, ...] = ()
    attackers: tuple[str | None, ...] = ()
    variants: tuple[str | None, ...] = ()

    def fits(self, row: Mapping[str, Any]) -> bool:
        """Whether a row is one of these."""
        asked = (("metric", self.metrics), ("attacker", self.attackers), ("variant", self.variants))
        return all(not allowed or row[name] in allowed for name, allowed in asked)


CHANGES: tuple[Change, ...] = (
    Change(
        2,
        "attackers learn in double precision and to the end, and people with the same probability count as ties",
        metrics=("micro_f1", "balanced_accuracy", "auc", "usable_bits"),
    ),
    Change(
        2,
        "sums of probabilities are more precise, and the draws behind intervals no longer change with rounding",
        metrics=("dp", "eo", "ndcg_gap"),
    ),
    Change(2, "the floor is the mean over all orders, no longer of some that were drawn", metrics=("ndkl",)),
    Change(
        3,
        "the strongest attacker is the largest of five, with an interval that holds for that choice",
        metrics=("micro_f1", "balanced_accuracy", "auc", "usable_bits"),
        attackers=("worst",),
    ),
    Change(
        3,
        "attackers learn from people whose value they know which way to read it, and few people of a value widen the "
        "interval",
        metrics=("micro_f1", "balanced_accuracy", "auc", "usable_bits"),
    ),
    Change(
        3,
        "attackers by predicted links and by radial basis functions are tried",
        "added",
        attackers=("links", "linked-trees", "rbf"),
    ),
    Change(3, "each figure of links has the training degree's beside it", metrics=("ndcg_at_10", "ndcg_gap", "ndkl")),
    Change(
        3,
        "DP and EO of calibrated probabilities and of the first ten recommendations are measured",
        "added",
        metrics=("dp", "eo"),
        variants=("calibrated", "top-10"),
    ),
    Change(
        3,
        "pseudo-edges are as many within a group as between two, and weights are 1 on average",
        metrics=("ndcg_at_10_bias_free",),
    ),
    Change(
        4,
        "people of groups of under twelve are left out, and others that hide how many these are; so are edges and lists",
        metrics=(
            "micro_f1",
            "balanced_accuracy",
            "auc",
            "usable_bits",
            "dp",
            "eo",
            "ndcg_gap",
            "ndkl",
            "ndcg_at_10_matched",
            "ndcg_attribute_share",
        ),
    ),
    Change(
        5, "of more than a hundred thousand people some are drawn; an earlier record is measured anew of all", "drawn"
    ),
    *(Change(m.since, f"{m.label} is measured", "added", metrics=(m.name,)) for m in METRICS.values() if m.since > 1),
)
VERSION = max(change.version for change in CHANGES)
"""Counts up where `CHANGES` gets entries; a record without one is of version 1."""


def since(version: int) -> tuple[Change, ...]:
    """The changes after a version, of what is measured of the same people."""
    return tuple(change for change in CHANGES if change.version > version and change.kind != "drawn")
