"""A recipe's published numbers beside ours, with a verdict for each, and what becomes of the paper's claims.

Of a number the verdict is the first that applies:

1. `not measured`: there is no row of it, or too little evidence.
2. `no interval`: the audit tells the random embedding's figure without one.
3. `within the interval`: the published number lies in our 95 % interval. That of the random embedding's Micro-F1 is
   the binomial one of the people tested.
4. `not distinguishable`: no difference from no debiasing is shown, so that no direction can be told.
5. `direction holds`: it differs from no debiasing, measured here, as the published ones differ.
6. `differs`: it differs the other way, or where the published ones do not; or it is no debiasing or the random
   embedding and outside the interval.

A difference is shown over three or more seeds that both have, by their mean difference with its interval over seeds and
people (`separation.halves_over_seeds`; the least difference that other pages ask for is left out, as published numbers
differ by thousandths); with fewer seeds where the two intervals do not meet.

A claim is that some figures are less than others. It `holds` where each difference is shown in that order, `does not
hold` where some is shown in the other, and is `not distinguishable` in between; it is `not measured in full` where some
are missing and none is shown in the other order. What the paper says of most cases holds where more than half are shown
in its order, and does not where more than half are in the other. Each is judged twice: by the figures as published, and
by the strongest attacker on people whose values training did not see with attribute-matched link quality and calibrated
gaps.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import pandas as pd

from uge_core.audit import version
from uge_core.audit.base import RowRecord
from uge_core.files import to_csv
from uge_core.runs.recipe import FIGURES, Claim, Column, Recipe, recipe, recipe_names, shipped_rows
from uge_core.views.points import ENOUGH_SEEDS, Reading, reading
from uge_core.views.separation import halves_over_seeds

Evaluation = Literal["published", "ours"]
EVALUATIONS: tuple[Evaluation, ...] = ("published", "ours")
HOW: Mapping[Evaluation, str] = {"published": "As published", "ours": "As measured here"}
LABELS: Mapping[tuple[str, Evaluation], str] = {
    ("micro_f1", "published"): "Micro-F1, balanced linear probe",
    ("micro_f1", "ours"): "worst AUC, unseen people",
    ("ndcg", "published"): "NDCG@10, as published",
    ("ndcg", "ours"): "attribute-matched NDCG@10",
    ("dp", "published"): "DP, raw probabilities",
    ("dp", "ours"): "DP, calibrated",
    ("eo", "published"): "EO, raw probabilities",
    ("eo", "ours"): "EO, calibrated",
}
"""What a figure is called, by how it is measured."""
_FIELDS = ("value", "ci_low", "ci_high", "floor_random", "floor_majority", "floor_degree", "n")
HEAD = ("backbone", "attribute", "figure", "column", "published", "ours", "difference", "verdict", "as measured here")


@dataclass(frozen=True)
class PaperCell:
    """A published number, or the place of one, and ours.

    Attributes:
        backbone: the embedding model.
        attribute: the sensitive attribute.
        figure: of `recipe.FIGURES`.
        column: the column's label.
        published: the published number, or None where the paper draws it alone.
        measured: ours, as published.
        ours: ours, as this package measures.
        verdict: see the module.
        why: what the verdict rests on.
        attacker: the strongest attackers of the seeds, of micro_f1.
        unusable: why the vectors of some seed are not usable, or "".
    """

    backbone: str
    attribute: str
    figure: str
    column: str
    published: float | None
    measured: Reading | None
    ours: Reading | None
    verdict: str
    why: str
    attacker: str = ""
    unusable: str = ""

    @property
    def fields(self) -> dict[str, str]:
        """By `HEAD`, and what the verdict rests on."""
        return dict(zip(HEAD, self.line, strict=True)) | {"why": self.why}

    @property
    def line(self) -> list[str]:
        """As a row below `HEAD`."""
        gap = "" if self.published is None or self.measured is None else f"{self.measured.value - self.published:+.4f}"
        told = "" if self.published is None else f"{self.published:.4f}"
        at = [self.backbone, self.attribute, LABELS[self.figure, "published"], self.column]
        who = f" ({self.attacker})" if self.attacker else ""
        ours = f"{LABELS[self.figure, 'ours']} {_told(self.ours)}{who}" if self.ours else ""
        ours += f"; not usable: {self.unusable}" if self.unusable else ""
        return [*at, told, _told(self.measured), gap, self.verdict, ours]


@dataclass(frozen=True)
class JudgedClaim:
    """What becomes of a claim.

    Attributes:
        words: what the claim says.
        backbone: the embedding model.
        judged: under which evaluation, the verdict, and what it rests on.
        ours: the paper does not say it.
    """

    words: str
    backbone: str
    judged: tuple[tuple[str, str, str], ...]
    ours: bool


@dataclass(frozen=True, eq=False)
class PaperTable:
    """A recipe and the rows that were measured for it.

    Attributes:
        recipe: the recipe.
        rows: of `reproduce`, of any recipe of the graph; those that are not this one's are left out.
    """

    recipe: Recipe
    rows: Sequence[Mapping[str, Any]]

    @cached_property
    def cells(self) -> tuple[PaperCell, ...]:
        """Every number, in the order of the paper."""
        asked = list(dict.fromkeys(key[:3] for key in self.recipe.published if key[0] in self.recipe.backbones))
        if not asked:
            drawn = [f for f in FIGURES if any(f in panel for panel in self.recipe.panels)] or ["micro_f1"]
            asked = [(b, a, f) for b in self.recipe.backbones for a in self.recipe.attributes for f in drawn]
        return tuple(self._cell(*at, column) for at in asked for column in self.recipe.columns)

    @cached_property
    def claims(self) -> tuple[JudgedClaim, ...]:
        """Every claim, for every backbone."""
        return tuple(self._judged(claim, b) for b in self.recipe.backbones for claim in self.recipe.claims)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds that are measured."""
        own = {int(r["seed"]) for c in self.recipe.columns for b in self.recipe.backbones for r in self._of(b, c)}
        return tuple(sorted(own))

    @property
    def measured_words(self) -> str:
        """How much is measured, of which seeds."""
        done = len(self.cells) - self.missing
        if not done:
            return f"None of {len(self.cells)} figures is measured yet."
        seeds = ", ".join(map(str, self.seeds))
        kinds = {cell.measured.kind for cell in self.cells if cell.measured and cell.measured.kind}
        over = " or ".join({"seeds": "seeds", "nodes": "tested people"}[kind] for kind in sorted(kinds))
        return (
            f"{done} of {len(self.cells)} figures are measured, {'seeds' if len(self.seeds) > 1 else 'seed'} {seeds}; "
            f"intervals are 95 %, over {over}."
        )

    @property
    def missing(self) -> int:
        """How many cells have no figure."""
        return sum(cell.measured is None for cell in self.cells)

    def reading(self, backbone: str, attribute: str, figure: str, column: Column, how: Evaluation) -> Reading | None:
        """A figure over its seeds; of the random column what no debiasing's audit says of a random embedding."""
        return self._reading(self._cells_of(backbone, attribute, figure, column, how))

    def link_quality(self, backbone: str, attribute: str, column: Column) -> Reading | None:
        """Matched NDCG@10 of the exported embedding, whose gaps DP and EO are."""
        return self._reading(self._cells_of(backbone, attribute, "ndcg", column, "exported"))

    def _reading(self, of_seeds: Mapping[int, Mapping[str, Any]]) -> Reading | None:
        cells = [c for c in of_seeds.values() if "value" in c]
        rows = [dict.fromkeys(_FIELDS) | {k: c[k] for k in _FIELDS if k in c} | {"evidence": "ok"} for c in cells]
        return reading([cast("RowRecord", row) for row in rows])

    def refused(self, backbone: str, column: Column, attribute: str) -> str:
        """Why a method cannot serve here, or ""."""
        own = self._own(backbone, column)
        return next((r["refused"] for r in own if r["refused"] and attribute in r["audited"]), "")

    def markdown(self) -> str:
        """Numbers and claims in Markdown."""
        lines = [HEAD, ["---"] * len(HEAD), *(cell.line for cell in self.cells)]
        return "\n".join("| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines)

    def claim_lines(self) -> Iterator[str]:
        """A claim, and below it its two verdicts, indented."""
        several = len(self.recipe.backbones) > 1
        for claim in self.claims:
            where = f" ({claim.backbone})" if several else ""
            yield f"{claim.words}{where}"
            yield from (f"  {how}: {verdict}, {why}" for how, verdict, why in claim.judged)

    @cached_property
    def _mine(self) -> list[Mapping[str, Any]]:
        """Rows of this graph as it was last read, by this version of the audit."""
        rows = [r for r in self.rows if r["data"] == self.recipe.data and r["audit"] == version.VERSION]
        return [r for r in rows if r["fingerprint"] == rows[-1]["fingerprint"]]

    def _own(self, backbone: str, column: Column) -> Iterator[Mapping[str, Any]]:
        entry = column.entry
        if entry is None:
            return
        settings = self.recipe.settings_of(column)
        for row in self._mine:
            same = row["backbone"] == backbone and row["method"] == entry.method and row["settings"] == settings
            # A method without a given lambda is trained with its own.
            if same and row["options"] == dict(entry.options) and (entry.lam is None or row["lam"] == entry.lam):
                yield row

    def _of(self, backbone: str, column: Column) -> Iterator[Mapping[str, Any]]:
        return (r for r in self._own(backbone, column) if r["run"] and r["seed"] in self.recipe.seeds)

    def _cells_of(
        self, backbone: str, attribute: str, figure: str, column: Column, how: str
    ) -> dict[int, Mapping[str, Any]]:
        """By seed; of the random column what no debiasing's audit says of a random embedding."""
        if column.entry is None:
            plain = self.recipe.untreated
            found = self._cells_of(backbone, attribute, figure, plain, how) if plain else {}
            binomial = (figure, how) == ("micro_f1", "published")
            return {seed: _random(c, binomial=binomial) for seed, c in found.items() if "floor_random" in c}
        by_seed: dict[int, Mapping[str, Any]] = {}
        wanted: tuple[str, ...] = (attribute,)
        if column.entry.method == "none":
            wanted = ()
        elif column.jointly:
            wanted = self.recipe.joint_attributes
        for row in self._of(backbone, column):
            if tuple(row["treated"]) == wanted and attribute in row["figures"]:
                by_seed[row["seed"]] = row["figures"][attribute].get(figure, {}).get(how, {})
        return dict(sorted(by_seed.items()))

    def _side(self, backbone: str, attribute: str, figure: str, a: Column, b: Column, how: Evaluation) -> int | None:
        """-1 where a's figure is less than b's, 1 where it is more, 0 where neither is shown; None: one is missing."""
        of = [self._cells_of(backbone, attribute, figure, column, how) for column in (a, b)]
        pairs = [(x, of[1][seed]) for seed, x in of[0].items() if seed in of[1]]
        pairs = [(x, y) for x, y in pairs if all("value" in c and "ci_low" in c and "ci_high" in c for c in (x, y))]
        if len(pairs) >= ENOUGH_SEEDS:
            differences = [x["value"] - y["value"] for x, y in pairs]
            halves = [tuple((c["ci_high"] - c["ci_low"]) / 2 for c in pair) for pair in pairs]
            mean, half = statistics.mean(differences), math.hypot(*halves_over_seeds(differences, halves))
            return 0 if abs(mean) <= half else -1 if mean < 0 else 1
        x, y = (self.reading(backbone, attribute, figure, column, how) for column in (a, b))
        if x is None or y is None:
            return None
        (low, high), (bottom, top) = _ends(x), _ends(y)
        return -1 if high < bottom else 1 if low > top else 0

    def _cell(self, backbone: str, attribute: str, figure: str, column: Column) -> PaperCell:
        published = self.recipe.published.get((backbone, attribute, figure, column.label))
        measured, ours = (self.reading(backbone, attribute, figure, column, how) for how in EVALUATIONS)
        cells = self._cells_of(backbone, attribute, figure, column, "ours").values()
        who = ", ".join(sorted({c["attacker"] for c in cells if c.get("attacker")}))
        verdict, why = self._verdict(backbone, attribute, figure, column, published, measured)
        usable = self._cells_of(backbone, attribute, "usable", column, "ours").values() if column.entry else ()
        bad = next((str(c["note"]).removeprefix("not usable: ") for c in usable if c.get("value") == 0), "")
        return PaperCell(backbone, attribute, figure, column.label, published, measured, ours, verdict, why, who, bad)

    def _verdict(
        self,
        backbone: str,
        attribute: str,
        figure: str,
        column: Column,
        published: float | None,
        measured: Reading | None,
    ) -> tuple[str, str]:
        if measured is None:
            refused = self.refused(backbone, column, attribute)
            return "not measured", refused or "no run of it is stored, or its evidence is too little"
        if published is None:
            return "", "the paper draws this number and does not print it"
        low, high = _ends(measured)
        if low == high:
            return "no interval", "what random vectors give is told without one"
        if low <= published <= high:
            return "within the interval", f"{published:.4f} lies in {_told(measured)}"
        plain = self.recipe.untreated
        if plain is None or column is plain or column.entry is None:
            return "differs", f"{published:.4f} lies outside {_told(measured)}"
        before = self.reading(backbone, attribute, figure, plain, "published")
        was = self.recipe.published.get((backbone, attribute, figure, plain.label))
        side = self._side(backbone, attribute, figure, column, plain, "published")
        if side is None or was is None:
            return "not distinguishable", "no debiasing is not measured, which the direction is told from"
        said = f"published {was:.4f} to {published:.4f}, ours {_told(before)} to {_told(measured)}"
        if side == 0:
            return "not distinguishable", f"{said}: no difference is shown"
        return ("direction holds" if side * (published - was) > 0 else "differs"), said

    def _judged(self, claim: Claim, backbone: str) -> JudgedClaim:
        judged = tuple((HOW[how], *self._claim(claim, backbone, how)) for how in EVALUATIONS)
        return JudgedClaim(claim.words, backbone, judged, claim.ours)

    def _in_print(self, claim: Claim, backbone: str) -> str:
        """How many comparisons the published numbers themselves have in the claim's order."""
        pairs = [
            [self.recipe.published.get((backbone, a, claim.figure, c)) for c in (less, than)]
            for a in claim.attributes
            for less in claim.less
            for than in claim.than
        ]
        known = [(x, y) for x, y in pairs if x is not None and y is not None]
        return f"; of the published numbers {sum(x < y for x, y in known)} of {len(known)}" if known else ""

    def _claim(self, claim: Claim, backbone: str, how: Evaluation) -> tuple[str, str]:
        if claim.path is not None:
            return self._path(claim, backbone, how)
        count = {-1: 0, 0: 0, 1: 0}
        against, missing = list[str](), 0
        for attribute in claim.attributes:
            for less in claim.less:
                for than in claim.than:
                    a, b = self.recipe.column(less), self.recipe.column(than)
                    side = self._side(backbone, attribute, claim.figure, a, b, how)
                    if side is None:
                        missing += 1
                        continue
                    count[side] += 1
                    if side > 0:
                        told = (self.reading(backbone, attribute, claim.figure, c, how) for c in (a, b))
                        x, y = (f"{c.value:.3f}" for c in told if c)
                        against.append(f"{attribute}: {less} {x} above {than} {y}")
        verdict, why = _summed(count[-1], count[0], against, missing, mostly=claim.mostly)
        return verdict, why + (self._in_print(claim, backbone) if how == "published" else "")

    def _path(self, claim: Claim, backbone: str, how: Evaluation) -> tuple[str, str]:
        """Whether points of the second series are beaten in both figures by some of the first, and none the other way."""
        if claim.path is None:
            raise AssertionError("a claim about two series")
        held, against, missing = 0, list[str](), 0
        for attribute in claim.attributes:
            there = [
                [
                    column
                    for column in map(self.recipe.column, labels)
                    if all(self.reading(backbone, attribute, f, column, how) for f in ("micro_f1", "ndcg"))
                ]
                for labels in claim.path
            ]
            if any(len(some) < len(labels) for some, labels in zip(there, claim.path, strict=True)):
                missing += 1
                continue

            def beaten(of: Sequence[Column], by: Sequence[Column], attribute: str = attribute) -> int:
                """How many of these some other beats in both figures."""
                beats = [
                    any(
                        self._side(backbone, attribute, "micro_f1", one, o, how) == -1
                        and self._side(backbone, attribute, "ndcg", one, o, how) == 1
                        for one in by
                    )
                    for o in of
                ]
                return sum(beats)

            first, second = there
            won, lost = beaten(second, first), beaten(first, second)
            held += lost == 0 and 2 * won > len(second)
            if lost:
                against.append(f"{attribute}: {lost} points of the first are beaten by the second, {won} the other way")
        undecided = len(claim.attributes) - held - len(against) - missing
        return _summed(held, undecided, against, missing)


def paper_choices() -> dict[str, str]:
    """The package's recipes with what they show, those of which most is measured first."""
    tables = {name: shipped_table(name) for name in recipe_names()}
    return {
        name: t.recipe.title
        for name, t in sorted(tables.items(), key=lambda item: item[1].missing / len(item[1].cells))
    }


def shipped_table(name: str) -> PaperTable:
    """A recipe with the rows that come with the package.

    Raises:
        ConfigError: there is no such recipe.
    """
    asked = recipe(name)
    return PaperTable(asked, shipped_rows(asked.data))


def paper_rows(table: PaperTable, backbone: str) -> list[dict[str, str]]:
    """The numbers of a backbone, without columns that are empty everywhere."""
    rows = [cell.fields for cell in table.cells if cell.backbone == backbone]
    return [{key: row[key] for key in row if any(r[key] for r in rows)} for row in rows]


def paper_csv(table: PaperTable) -> str:
    """All numbers as CSV."""
    return to_csv(pd.DataFrame([cell.fields for cell in table.cells], columns=[*HEAD, "why"]))


def _random(untreated: Mapping[str, Any], *, binomial: bool) -> dict[str, Any]:
    """The cell of a random embedding, tested on the people of this one."""
    value, n = float(untreated["floor_random"]), untreated.get("n")
    half = 1.96 * math.sqrt(value * (1 - value) / n) if binomial and n else 0.0
    return {"value": value, "ci_low": value - half, "ci_high": value + half, "n": n}


def _summed(
    held: int, undecided: int, against: Sequence[str], missing: int, *, mostly: bool = False
) -> tuple[str, str]:
    """A claim's verdict over its comparisons."""
    total = held + undecided + len(against) + missing
    if missing == total:
        return "not measured", "no figure of it is stored"
    said = f"{held} of {total} comparisons hold"
    if undecided:
        said += f", {undecided} not distinguishable"
    if missing:
        said += f", {missing} not measured"
    if against:
        more = f" and {len(against) - 2} more" if len(against) > 2 else ""
        said += f"; against it {', '.join(against[:2])}{more}"
    if 2 * len(against) > total if mostly else against:
        return "does not hold", said
    if missing:
        return "not measured in full", said
    return ("holds" if (2 * held > total if mostly else held == total) else "not distinguishable"), said


def _ends(one: Reading) -> tuple[float, float]:
    return (one.value if one.low is None else one.low, one.value if one.high is None else one.high)


def _told(one: Reading | None) -> str:
    if one is None:
        return ""
    if one.low is None or one.high is None or one.low == one.high:
        return f"{one.value:.4f}"
    return f"{one.value:.4f} [{one.low:.4f}, {one.high:.4f}]"
