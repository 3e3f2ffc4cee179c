"""Tables of `uge rivals`: what each method hides and what it costs, over its seeds, and which no other beats.

Leakage and link quality are of the same vectors: beside what attackers read of people whose values training did not
see stands the link quality of the twin that did not see them. DP and EO are the exported embedding's.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS
from uge_core.audit.base import RowRecord
from uge_core.runs.names import method_class
from uge_core.views.points import Reading, reading

_OF_ONE_TABLE = ("data", "fingerprint", "sensitive", "backbone", "settings", "attackers", "audit")
_FIELDS = ("value", "ci_low", "ci_high", "floor_random", "floor_majority", "floor_degree", "n")
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "worst AUC, seen": ("auc", "worst", "seen"),
    "worst AUC, unseen": ("auc", "worst", "unseen"),
    "AUC, linear, unseen": ("auc", "linear", "unseen"),
    "AUC, links, unseen": ("auc", "links", "unseen"),
    "AUC, with neighbours, unseen": ("auc_with_neighbours", "", "unseen"),
    "matched NDCG@10": ("ndcg", "matched", "unseen"),
    "% of none's": (),
    "NDCG@10": ("ndcg", "uniform", "unseen"),
    "bias-free NDCG@10": ("ndcg", "bias-free", "unseen"),
    "DP, calibrated": ("dp", "calibrated"),
    "EO, calibrated": ("eo", "calibrated"),
    "DP, first ten": ("dp", "top-10"),
    "EO, first ten": ("eo", "top-10"),
    "seconds": (),
}
"""Where a row has a column's figure."""


@dataclass(frozen=True, eq=False)
class Rival:
    """A method at one lambda with its own settings, over its seeds.

    Attributes:
        label: method, lambda and settings, as an entry is typed.
        method: the method's name.
        rows: of its seeds; none where it was refused.
        refused: why it cannot serve, or "".
    """

    label: str
    method: str
    rows: tuple[Mapping[str, Any], ...]
    refused: str = ""

    def cells(self, *path: str) -> list[Mapping[str, Any]]:
        """A figure of each seed; of attackers with neighbours the largest."""
        if path[:1] == ("auc_with_neighbours",):
            tried = [[of[path[-1]] for of in row[path[0]].values()] for row in self.rows]
            return [max(of, key=lambda c: c.get("value", 0.0)) for of in tried if of]
        found = []
        for row in self.rows:
            cell: Any = row
            for key in path:
                cell = cell[key]
            found.append(cell)
        return found

    def reading(self, *path: str) -> Reading | None:
        """The figure as one with its interval, as charts show it."""
        cells = [dict.fromkeys(_FIELDS) | dict(c) for c in self.cells(*path) if "value" in c]
        return reading([cast("RowRecord", c | {"evidence": "ok"}) for c in cells])

    def worst(self, exposure: str = "unseen") -> Reading | None:
        """The AUC of the strongest attacker that looks at vectors and labels alone."""
        return self.reading("auc", "worst", exposure)

    def matched(self, exposure: str = "unseen") -> Reading | None:
        """Link quality among strangers of the friend's own group."""
        return self.reading("ndcg", "matched", exposure)

    @property
    def unusable(self) -> str:
        """Why its vectors, or their twin's, of one seed or more are not usable; "" where they are."""
        cells = [c for exposure in ("seen", "unseen") for c in self.cells("usable", exposure)]
        return next((str(c["note"]).removeprefix("not usable: ") for c in cells if c.get("value") == 0), "")


@dataclass(frozen=True, eq=False)
class RivalsTable:
    """Methods that were measured alike on one graph.

    Attributes:
        about: what its rows have in common.
        rivals: in the order of lists.
    """

    about: Mapping[str, Any]
    rivals: tuple[Rival, ...]

    @property
    def title(self) -> str:
        """Graph, attribute, backbone and settings."""
        about = self.about
        more = [f"{key}={value}" for key, value in about["settings"].items()]
        beside = [a for a in about["attackers"] if a not in DEFAULT_ATTACKERS]
        more += [f"attackers also {', '.join(beside)}"] if beside else []
        return ", ".join([about["data"], about["sensitive"], about["backbone"], *more])

    @cached_property
    def front(self) -> tuple[Rival, ...]:
        """Those that are usable and that no other such beats in both matched NDCG@10 and worst AUC unseen."""
        there = [
            (r, x.value, y.value) for r in self.rivals if not r.unusable and (x := r.matched()) and (y := r.worst())
        ]
        return tuple(r for r, x, y in there if not any(a > x and b < y for _, a, b in there))

    @property
    def front_words(self) -> str:
        """The front in a sentence."""
        labels = ", ".join(r.label for r in self.front) or "none was measured in both"
        return f"Beaten by no other in both matched NDCG@10 and worst AUC, unseen: {labels}."

    @property
    def floors(self) -> str:
        """What chance, the majority and the training degree alone give, and what the figures are means of."""
        first = next((r for r in self.rivals if r.rows), None)
        if first is None:
            return ""
        f1, auc, links = (
            first.reading(*p) for p in (("micro_f1", "seen"), ("auc", "worst", "seen"), _COLUMNS[_MATCHED])
        )
        known = {
            "majority Micro-F1": f1 and f1.majority,
            "worst AUC of random embeddings": auc and auc.random,
            "matched NDCG@10 of a random order": links and links.random,
            "of the training degree alone": links and links.degree,
        }
        seeds = sorted({row["seed"] for r in self.rivals for row in r.rows})
        said = "; ".join(f"{name} {value:.3f}" for name, value in known.items() if value is not None)
        several = f"Means over seeds {', '.join(map(str, seeds))}, +- half the range"
        over = several if len(seeds) > 1 else f"Seed {seeds[0]}"
        return f"{over}. {said[:1].upper()}{said[1:]}."

    @property
    def head(self) -> list[str]:
        """The names of the columns that are measured."""
        return ["method", *self._columns, "remark"]

    @property
    def lines(self) -> list[list[str]]:
        """Means over seeds, and half the range where there are more than one."""
        return [self._line(rival) for rival in self.rivals]

    def markdown(self) -> str:
        """The table in Markdown, and the front below it."""
        lines = [self.head, ["---"] * len(self.head), *self.lines]
        rows = ("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return "\n".join([*rows, "", self.front_words])

    @cached_property
    def _columns(self) -> list[str]:
        tried = any(row["auc_with_neighbours"] for r in self.rivals for row in r.rows)
        return [name for name, path in _COLUMNS.items() if tried or path[:1] != ("auc_with_neighbours",)]

    @cached_property
    def _untreated(self) -> float | None:
        """The matched NDCG@10 without debiasing."""
        plain = next((r.matched() for r in self.rivals if r.label == "none"), None)
        return None if plain is None else plain.value

    def _line(self, rival: Rival) -> list[str]:
        if not rival.rows:
            return [rival.label, *[""] * len(self._columns), rival.refused]
        remark = "on the front" if rival in self.front else f"not usable: {rival.unusable}" if rival.unusable else ""
        return [rival.label, *(self._figure(rival, name) for name in self._columns), remark]

    def _figure(self, rival: Rival, column: str) -> str:
        if column == "seconds":
            seconds = statistics.mean(row["seconds"] for row in rival.rows)
            return f"{seconds:.{0 if seconds >= 10 else 1}f}"
        if column == "% of none's":
            plain = self._untreated
            shares = [c.get("value") for c in rival.cells(*_COLUMNS[_MATCHED])]
            return _spread([v and 100 * v / plain for v in shares], 0) if plain else ""
        cells = rival.cells(*_COLUMNS[column])
        who = ", ".join(sorted({c["attacker"] for c in cells if c.get("attacker")}))
        return _spread([c.get("value") for c in cells], 3) + (f" ({who})" if who else "")


_MATCHED = "matched NDCG@10"


def rivals_tables(rows: Sequence[Mapping[str, Any]]) -> tuple[RivalsTable, ...]:
    """The tables of some rows of `rivals`, one for each graph, attribute, backbone, settings and set of attackers."""
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        tables.setdefault(json.dumps([row[key] for key in _OF_ONE_TABLE], sort_keys=True), []).append(row)
    return tuple(RivalsTable({key: of[0][key] for key in _OF_ONE_TABLE}, _rivals(of)) for of in tables.values())


def _rivals(rows: Sequence[Mapping[str, Any]]) -> tuple[Rival, ...]:
    """One for each method, lambda and settings; a seed that was measured again counts as measured last."""
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(_label(row), []).append(row)
    found = []
    for label, of in grouped.items():
        by_seed = {row["seed"]: row for row in of if row["run"]}
        refused = "" if by_seed else of[-1]["refused"]
        found.append(Rival(label, of[0]["method"], tuple(by_seed[s] for s in sorted(by_seed)), refused))
    return tuple(sorted(found, key=lambda r: method_class(r.method).position))


def _label(row: Mapping[str, Any]) -> str:
    lam = [] if row["lam"] is None else [f"{row['lam']:g}"]
    return " ".join([row["method"], *lam, *(f"{key}={value}" for key, value in row["options"].items())])


def _spread(seeds: Sequence[float | None], digits: int) -> str:
    """The mean over seeds and half the range; it says of how many seeds where the evidence reaches for some alone."""
    values = [v for v in seeds if v is not None]
    if not values:
        return "too little evidence"
    half = f" +- {(max(values) - min(values)) / 2:.{digits}f}" if len(values) > 1 else ""
    some = f" ({len(values)} of {len(seeds)} seeds)" if len(values) < len(seeds) else ""
    return f"{statistics.mean(values):.{digits}f}{half}{some}"
