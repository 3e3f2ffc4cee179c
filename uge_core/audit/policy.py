"""Guardrails: a policy file says which numbers an audit must keep to, and each rule gets a verdict.

A policy is a YAML list of rules::

    - metric: auc                  # a metric of the audit
      attribute: region            # or "*": a rule for each attribute that has this metric
      attacker: worst              # leakage: the default is worst
      exposure: unseen             # default: unseen where it was measured, else what there is
      variant: standard            # default: standard, held-out, or calibrated (dp, eo); raw: the paper's dp and eo
      direction: at_most           # or at_least
      number: 0.6
      unit: auc                    # the metric's own (the default), or above_floor
      min_n: 100                   # fewer nodes, targets, pairs or edges are not enough evidence (default 100)
      max_width: 0.1               # neither is a wider interval (default: any width will do)
      on: interval                 # or value: the number alone, whatever its interval
      optional: true               # no error where no row fits

On the interval, the default, a rule passes where the whole 95 % interval lies on the allowed side and
fails where the whole of it lies on the other; an interval across the number is not enough evidence,
and neither is a row that has none. A failed rule fails the policy; else one without enough evidence
leaves the policy without.

An embedding that is not usable (`usable`) breaks every rule, as one that says nothing about links leaks nothing and
treats all alike; where that could not be told, or was not asked, a rule that it keeps is not enough evidence. Neither is
a rule on the worst attacker where an attacker that is tried by default was not among those tried.

Attackers learn from people whose value they know which way to read it, so an AUC stands as it is. Audits before
version 3 did not: there an AUC below .5 is turned round, max(v, 1 - v), and the interval likewise. `above_floor` is the
value less the highest of its floors (random embeddings or order, always answering the largest class, for a lower bound
on link quality the training degree), which count as exact.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from uge_core.audit.attacker_order import DEFAULT_ATTACKERS, chosen_among
from uge_core.audit.base import METRICS
from uge_core.errors import ConfigError
from uge_core.files import StrictLoader
from uge_core.registry import unknown_name

PASS, FAIL, NOT_ENOUGH, NO_ROW = "pass", "fail", "not enough evidence", "no row"
EXIT_CODES: Mapping[str, int] = {PASS: 0, FAIL: 1, NOT_ENOUGH: 3}
ABOVE_FLOOR = "above_floor"
_FLOORS = {"floor_random": "random", "floor_majority": "majority", "floor_degree": "degree"}
_LUCK = {"nodes": "who was tested", "seeds": "the training's seed", "splits": "the split"}
# What a rule that names none takes, the first that is there.
_VARIANTS = ("standard", "held-out", None, "all-edges")
_TO_BE_ASKED_FOR = ("as-coded", "planted-truth")
_GAPS = ("dp", "eo")
_CALIBRATED = "calibrated"
_RAW = "raw"  # how a rule asks for the gaps that depend on how long vectors are
_RAW_VARIANTS = (None, "held-out", "all-edges")
_EXPOSURES = ("unseen", None, "seen")
_OF_A_ROW = ("attribute", "attacker", "variant", "exposure")
_DIRECTIONS = ("at_most", "at_least")
_MOST_BYTES = 2**20


Row = Mapping[str, Any]
"""A row of a `uge-audit/1` record."""


def unit_of(metric: str) -> str:
    """What a metric is measured in, as a policy calls it."""
    return METRICS[metric].unit if metric in METRICS else "value"


@dataclass(frozen=True)
class Rule:
    """One rule; see the module's text for how a file writes it.

    Attributes:
        metric: the metric.
        direction: which side is allowed.
        number: the bound.
        attribute: the attribute; null for a metric that has none.
        attacker: the attacker; null for a metric that has none.
        variant: the variant.
        exposure: the exposure.
        unit: what the number is in: the metric's own unit, or above_floor, the distance to the higher floor.
        min_n: the smallest n that counts as evidence.
        max_width: the widest interval that counts as evidence.
        on: what is held against the bound.
        optional: whether the rule may have no row.
    """

    metric: str
    direction: str
    number: float
    attribute: str | None = None
    attacker: str | None = None
    variant: str | None = None
    exposure: str | None = None
    unit: str = ""
    min_n: int = 100
    max_width: float | None = None
    on: str = "interval"
    optional: bool = False


@dataclass(frozen=True)
class Check:
    """A rule held against one row.

    Attributes:
        number: the rule's place in its file, from 1.
        rule: the rule, with the row's own attribute, attacker, variant and exposure.
        verdict: pass, fail, not enough evidence, or no row (an optional rule that nothing fits).
        sentence: the same in words, with the interval's role.
    """

    number: int
    rule: Rule
    verdict: str
    sentence: str


@dataclass(frozen=True)
class Verdict:
    """What a policy says of an audit.

    Attributes:
        name: the policy file's name.
        sha256: of the file's bytes.
        checks: every rule against every row it is about, in the file's order.
    """

    name: str
    sha256: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> str:
        """Fail beats not enough evidence, which beats pass; where no rule had a row, nothing was shown."""
        verdicts = {c.verdict for c in self.checks} - {NO_ROW}
        return next((v for v in (FAIL, NOT_ENOUGH) if v in verdicts), PASS if verdicts else NOT_ENOUGH)

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 not enough evidence."""
        return EXIT_CODES[self.verdict]

    def text(self) -> str:
        """A line per check, then the verdict."""
        lines = [f"rule {c.number}: {c.verdict.upper()}: {c.sentence}" for c in self.checks]
        return "\n".join([*lines, f"{self.name}: {self.verdict}"])

    def to_json(self) -> dict[str, Any]:
        """The `policy` block of a `uge-audit/1` record."""
        rules = [
            {"rule": c.number, **asdict(c.rule), "verdict": c.verdict, "sentence": c.sentence} for c in self.checks
        ]
        return {"name": self.name, "sha256": self.sha256, "verdict": self.verdict, "rules": rules}


@dataclass(frozen=True)
class Policy:
    """A policy file's rules; its name and the SHA-256 of its bytes."""

    name: str
    sha256: str
    rules: tuple[Rule, ...]

    def check(self, rows: Iterable[Row]) -> Verdict:
        """Holds the rows of a `uge-audit/1` record against the rules.

        Raises:
            ConfigError: no row fits a rule; the message says which exist.
        """
        rows = list(rows)
        gate = _Gate.of(rows)
        checks: list[Check] = []
        for i, rule in enumerate(self.rules, 1):
            checks += _checks(i, rule, rows, f"{self.name}, rule {i}", gate)
        return Verdict(self.name, self.sha256, tuple(checks))


def read(path: str | Path) -> Policy:
    """Reads and checks a policy file.

    Raises:
        ConfigError: the file cannot be read, or a rule is not allowed.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror or error}); name a policy file") from None
    return parse(path.name, content)


def parse(name: str, content: bytes) -> Policy:
    """The policy that `content` is, checked as the file `name` would be; errors as for `read`."""
    if len(content) > _MOST_BYTES:
        raise ConfigError(f"{name}: is larger than {_MOST_BYTES:,} bytes, which no policy is")
    return Policy(name, hashlib.sha256(content).hexdigest(), tuple(_rules(content, name)))


def first_misjudged(block: Mapping[str, Any], rows: Iterable[Row]) -> str | None:
    """Where the `policy` block of a record says other than its rows give, or None.

    Raises:
        ConfigError: a rule that no policy file could hold, or that no row fits.
    """
    rows, checks = list(rows), []
    gate = _Gate.of(rows)
    for i, said in enumerate(block["rules"], 1):
        where = f"policy, entry {i}"
        given = {k: v for k, v in said.items() if k not in ("rule", "verdict", "sentence") and v is not None}
        rule = _rule(given, where)
        if said["verdict"] == NO_ROW:
            check = next(_checks(said["rule"], rule, rows, where, gate))
        else:
            its = [r for r in rows if all(r[key] == said[key] for key in ("metric", *_OF_A_ROW))]
            if not its:
                return f"{where}: the report has no row of {_what(rule)}"
            check = Check(said["rule"], rule, *gate.judge(rule, its[0]))
        for key in ("verdict", "sentence"):
            if getattr(check, key) != said[key]:
                return f"{where}, {key}: the report says {said[key]!r}, its rows give {getattr(check, key)!r}"
        checks.append(check)
    overall = Verdict(block["name"], block["sha256"], tuple(checks)).verdict
    if overall != block["verdict"]:
        return f"policy, verdict: the report says {block['verdict']!r}, its rules give {overall!r}"
    return None


@dataclass(frozen=True)
class _Gate:
    """What the audit says of the embedding as a whole.

    Attributes:
        there: it was asked whether the embedding is usable.
        broken: why it is not, or None.
        unknown: why that could not be told, or None.
    """

    there: bool
    broken: str | None = None
    unknown: str | None = None

    @classmethod
    def of(cls, rows: Sequence[Row]) -> _Gate:
        """That of an audit's rows; of a twin's too."""
        asked = [r for r in rows if r["metric"] == "usable"]
        broken = [r["note"] or "" for r in asked if r["value"] is not None and r["value"] < 1]
        unknown = [r["note"] or "" for r in asked if r["value"] is None]
        return cls(bool(asked), *(next(iter(notes), None) for notes in (broken, unknown)))

    def judge(self, rule: Rule, row: Row) -> tuple[str, str]:
        """Verdict and sentence of a rule on its row, of an embedding that is usable or not."""
        if self.broken is not None:
            why = self.broken.removeprefix("not usable: ").split("; vectors are ")[0]
            return (
                FAIL,
                f"{_what(rule)} {_bound(rule)}, but the embedding is not usable, which fails every rule: {why}.",
            )
        verdict, sentence = _judge(rule, row, turns=not self.there)
        if rule.metric == "usable" or verdict != PASS:
            return verdict, sentence
        if self.unknown is not None:
            return NOT_ENOUGH, f"{sentence} Whether the embedding is usable at all could not be told: {self.unknown}."
        if not self.there:
            return NOT_ENOUGH, f"{sentence} But the audit does not say whether the embedding is usable: audit it anew."
        untried = set(DEFAULT_ATTACKERS) - {*chosen_among(row["note"])} if row["attacker"] == "worst" else set()
        if untried:
            names = ", ".join(n for n in DEFAULT_ATTACKERS if n in untried)
            return NOT_ENOUGH, f"{sentence} But {names} did not attack: audit it with the attackers of the default."
        return verdict, sentence


def template(rows: Iterable[Row]) -> str:
    """A policy to start from: a rule on the worst attacker's AUC of each attribute, and one on link quality."""
    rows = list(rows)
    named = dict.fromkeys(r["attribute"] for r in rows if r["metric"] == "auc" and r["attacker"] == "worst")
    rules: list[dict[str, Any]] = [
        {
            "metric": "auc",
            "attribute": name,
            "attacker": "worst",
            "direction": "at_most",
            "number": 0.6,
            "unit": "auc",
            "min_n": 100,
        }
        for name in named
    ]
    matched = {r["attribute"] for r in rows if r["metric"] == "ndcg_at_10_matched" and r["variant"] == "held-out"}
    quality: dict[str, Any] = {"direction": "at_least", "number": 0.1, "unit": ABOVE_FLOOR, "min_n": 100}
    rules += [{"metric": "ndcg_at_10_matched", "attribute": name} | quality for name in named if name in matched]
    if not matched and any(r["metric"] == "ndcg_at_10" and r["variant"] == "held-out" for r in rows):
        rules.append({"metric": "ndcg_at_10"} | quality)
    head = (
        "# A rule holds where the whole 95 % interval lies on its side of the number, and is broken where\n"
        "# the whole of it lies on the other; in between the evidence is not enough. The numbers are examples:\n"
        "# put those that your use can bear.\n"
    )
    return head + str(yaml.safe_dump(rules, sort_keys=False, allow_unicode=True, width=1000))


class _Loader(StrictLoader):
    """Only true and false are truth values, so that the key `on` and an attribute's name "no" stay text."""


_BOOL = "tag:yaml.org,2002:bool"
_Loader.yaml_implicit_resolvers = {
    letter: [found for found in resolvers if found[0] != _BOOL]
    for letter, resolvers in StrictLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))


def _rules(content: bytes, name: str) -> Sequence[Rule]:
    """The rules of a file."""
    try:
        given = yaml.load(content.decode("utf-8-sig"), _Loader)
    except UnicodeDecodeError:
        raise ConfigError(f"{name}: is not UTF-8 text; save it in that encoding") from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise ConfigError(f"{name}: {line}{error.problem}; a policy is a YAML list of rules") from None
    except RecursionError:
        raise ConfigError(f"{name}: is nested too deeply; a policy is a YAML list of rules") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{name}: is no YAML ({' '.join(str(error).split())}); save it as plain text") from None
    if not isinstance(given, list) or not given:
        held = "nothing" if not given else f"a {_kind(given)}"
        raise ConfigError(f"{name}: holds {held}; allowed: a list of rules, each beginning with '- metric:'")
    return [_rule(rule, f"{name}, rule {i}") for i, rule in enumerate(given, 1)]


def _kind(value: Any) -> str:
    names = {dict: "mapping", list: "list", str: "text", bool: "truth value", int: "number", float: "number"}
    return names.get(type(value), type(value).__name__)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= 1e300


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "metric": (_is_name, "a metric's name"),
    "attribute": (_is_name, 'an attribute\'s name in quotes, or "*" for each'),
    "attacker": (_is_name, "an attacker's name"),
    "variant": (_is_name, "a variant's name"),
    "exposure": (_is_name, "seen or unseen"),
    "direction": (lambda v: v in _DIRECTIONS, ", ".join(_DIRECTIONS)),
    "number": (_is_number, "a finite number such as 0.6"),
    "unit": (_is_name, "a unit's name"),
    "min_n": (lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 1, "a whole number of 1 or more"),
    "max_width": (lambda v: _is_number(v) and v > 0, "a finite number above 0"),
    "on": (lambda v: v in ("interval", "value"), "interval, value"),
    "optional": (lambda v: isinstance(v, bool), "true, false"),
}
"""Each key of a rule: what holds for its value, and how an error puts it."""


def _rule(given: Any, where: str) -> Rule:
    """A checked rule, still with its star."""
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: is a {_kind(given)}; allowed: keys and values such as 'metric: auc'")
    for key, value in given.items():
        if key in _DIRECTIONS:
            number = f"{value:g}" if _is_number(value) else "0.6"
            raise ConfigError(
                f"{where}: {key} is a direction, not a key; write direction: {key}, and the bound as number: {number}"
            )
        if key not in _FIELDS:
            raise ConfigError(f"{where}: {unknown_name('key', str(key)[:60], tuple(_FIELDS))}")
        holds, allowed = _FIELDS[key]
        if not holds(value):
            raise ConfigError(f"{where}: {key} = {_short(value)} is not allowed; allowed: {allowed}")
    for key in ("metric", "direction", "number"):
        if key not in given:
            raise ConfigError(f"{where}: {key} is missing; allowed: {_FIELDS[key][1]}")
    metric = given["metric"]
    if metric not in METRICS:
        raise ConfigError(f"{where}: {unknown_name('metric', metric, tuple(METRICS))}")
    rule = Rule(**{"unit": unit_of(metric), **given, "number": float(given["number"])})
    units = (unit_of(metric), ABOVE_FLOOR)
    if rule.unit not in units:
        raise ConfigError(f"{where}: {unknown_name(f'unit of {metric}', rule.unit, units)}")
    low, high = METRICS[metric].low, METRICS[metric].high
    if metric == "auc":
        # A lower bound would ask for less than a coin gives.
        low = 0.5
    if rule.unit == ABOVE_FLOOR:
        low, high = METRICS[metric].low - METRICS[metric].high, METRICS[metric].high - METRICS[metric].low
    if not low <= rule.number <= high:
        coin = "; a coin gets 0.5" if metric == "auc" else ""
        raise ConfigError(f"{where}: number = {rule.number:g} is out of range; allowed: {low:g} to {high:g}{coin}")
    return rule


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _checks(number: int, rule: Rule, rows: Sequence[Row], where: str, gate: _Gate) -> Iterator[Check]:
    """A rule against the row of each attribute it is about."""
    try:
        fitting = list(_fitting(rule, rows, where))
    except _NoRowError as error:
        if not rule.optional:
            raise ConfigError(str(error)) from None
        yield Check(number, rule, NO_ROW, f"{_what(rule)}: the audit has no such row, and the rule is optional.")
        return
    for row in fitting:
        own = replace(rule, **{key: row[key] for key in _OF_A_ROW})
        yield Check(number, own, *gate.judge(own, row))


class _NoRowError(ConfigError):
    """No row of the audit fits a rule."""


def _fitting(rule: Rule, rows: Sequence[Row], where: str) -> Iterator[Row]:
    """The one row of each attribute that a rule is about."""
    fitting: Sequence[Row] = [r for r in rows if r["metric"] == rule.metric]
    if not fitting:
        there = dict.fromkeys(r["metric"] for r in rows)
        raise _NoRowError(f"{where}: the audit has no rows of {rule.metric}; it has: {', '.join(there) or 'none'}")
    leakage = any(r["attacker"] for r in fitting)
    if rule.attacker and not leakage:
        raise ConfigError(f"{where}: {rule.metric} has no attacker; leave attacker out")
    names = dict.fromkeys(r["attribute"] for r in fitting if r["attribute"])
    if rule.attribute and not names:
        raise ConfigError(f"{where}: {rule.metric} is about no attribute; leave attribute out")
    if not rule.attribute and names:
        raise ConfigError(f'{where}: attribute is missing; allowed: "*", {", ".join(names)}')
    asked = {
        "attribute": None if rule.attribute == "*" else rule.attribute,
        "attacker": rule.attacker or ("worst" if leakage else None),
        "variant": rule.variant,
        "exposure": rule.exposure,
    }
    for key, name in asked.items():
        if name:
            fitting = _narrow(fitting, key, name, rule, where)
    for attribute in dict.fromkeys(r["attribute"] for r in fitting):
        mine = [r for r in fitting if r["attribute"] == attribute]
        variant = mine[0]["variant"] if rule.variant else _usual(mine, rule, where)
        mine = [r for r in mine if r["variant"] == variant]
        yield min(mine, key=lambda r: _EXPOSURES.index(r["exposure"]))


def _narrow(rows: Sequence[Row], key: str, asked: str, rule: Rule, where: str) -> Sequence[Row]:
    """The rows whose `key` is what was asked for, in any case; one without exposure counts as both."""
    kept = [r for r in rows if (r[key] or "").lower() == asked.lower()]
    if key == "variant" and rule.metric in _GAPS and asked.lower() == _RAW:
        kept = [r for r in rows if r[key] in _RAW_VARIANTS]
    if key == "exposure" and asked.lower() in _EXPOSURES:
        exact = {(r["attribute"], r["variant"]) for r in kept}
        kept += [r for r in rows if r[key] is None and (r["attribute"], r["variant"]) not in exact]
    if not kept:
        there = tuple(dict.fromkeys(r[key] for r in rows if r[key]))
        if key == "variant" and rule.metric in _GAPS:
            there = (*there, _RAW)
        of = f" of {rule.attribute}" if rule.attribute not in (None, "*") and key != "attribute" else ""
        raise _NoRowError(f"{where}: {unknown_name(f'{key} of {rule.metric}{of}', asked, there or ('none',))}")
    return kept


def _usual(rows: Sequence[Row], rule: Rule, where: str) -> str | None:
    """The variant of a rule that names none."""
    there = dict.fromkeys(r["variant"] for r in rows)
    if rule.metric in _GAPS:
        if _CALIBRATED in there:
            return _CALIBRATED
        raise _NoRowError(
            f"{where}: the audit has no calibrated {rule.metric}, as it was made by an earlier version; audit the run "
            f"anew, or write variant: {_RAW}, whose number depends on how long the vectors are"
        )
    usual = [v for v in _VARIANTS if v in there][:1] or [v for v in there if v not in _TO_BE_ASKED_FOR]
    if len(usual) != 1:
        raise ConfigError(f"{where}: variant of {rule.metric} is missing; allowed: {', '.join(filter(None, there))}")
    return usual[0]


def _judge(rule: Rule, row: Row, *, turns: bool) -> tuple[str, str]:
    """Verdict and sentence of a rule on its row; `turns` an AUC below .5 round."""
    turns = turns and rule.metric == "auc"
    start, value, bound = _what(rule), row["value"], _bound(rule)
    if value is None or row["evidence"] != "ok":
        why = f" ({row['note']})" if row["note"] else ""
        return NOT_ENOUGH, f"{start} {bound}, but there was not enough evidence to measure it{why}."
    low, high = row["ci_low"], row["ci_high"]
    said = ""
    if turns:
        value, low, high = _turned(value, low, high)
        if value != row["value"]:
            said = f", {row['value']:.4g} turned round, as an attacker would"
    if rule.unit == ABOVE_FLOOR:
        floors = {
            word: max(row[key], 1.0 - row[key]) if turns else row[key]
            for key, word in _FLOORS.items()
            if row.get(key) is not None and (key != "floor_degree" or rule.direction == "at_least")
        }
        if not floors:
            return NOT_ENOUGH, f"{start} {bound} above its floor, but the audit has no floor for it."
        word, floor = max(floors.items(), key=lambda f: f[1])
        said += f", {value:.4g} less the {word} floor {floor:.4g}"
        # Rounded, as .74 - .71 is a little more than .03.
        value, low, high = (None if end is None else round(end - floor, 12) for end in (value, low, high))
        bound += " above its floor"

    def shown(number: float) -> str:
        # As many digits as it takes to see on which side of the bound it lies.
        for digits in range(4, 17):
            text = f"{number:.{digits}g}"
            if (float(text) > rule.number, float(text) < rule.number) == (number > rule.number, number < rule.number):
                return text
        return repr(number)

    n = row["n"] or 0
    interval = "no interval" if low is None else f"95 % interval {shown(low)} to {shown(high)} over {row['ci_kind']}"
    start = f"{start} is {shown(value)}{said} ({interval}, n = {n:,}) and {bound}:"
    if n < rule.min_n:
        return NOT_ENOUGH, f"{start} fewer than the {rule.min_n:,} that the rule asks for, not enough evidence."
    if rule.max_width is not None and (low is None or high - low > rule.max_width):
        return (
            NOT_ENOUGH,
            f"{start} the rule asks for an interval no wider than {rule.max_width:g}, not enough evidence.",
        )
    luck = f"chance in {_LUCK.get(row['ci_kind'], 'the measurement')} does not explain it"
    over = rule.direction == "at_most"
    if rule.on == "value" or rule.metric == "usable":
        kept = value <= rule.number if over else value >= rule.number
        alone = "the value alone is judged, whatever its interval"
        return (PASS, f"{start} {alone}, and it passes.") if kept else (FAIL, f"{start} {alone}, and it fails.")
    if low is None:
        return NOT_ENOUGH, f"{start} without an interval chance cannot be told from more, not enough evidence."
    if (high <= rule.number) if over else (low >= rule.number):
        return PASS, f"{start} the whole interval lies on the allowed side, so it passes; {luck}."
    if (low > rule.number) if over else (high < rule.number):
        side = "above" if over else "below"
        return FAIL, f"{start} the whole interval lies {side}, so it fails; {luck}."
    return NOT_ENOUGH, f"{start} the interval lies across it, so either may be true, not enough evidence."


def _bound(rule: Rule) -> str:
    """What the rule asks for."""
    return f"must be {rule.direction.replace('_', ' ')} {rule.number:g}"


def _what(rule: Rule) -> str:
    """The rule's row in words."""
    exposure = {"unseen": "values unseen by training", "seen": "values seen by training"}.get(rule.exposure or "")
    attacker = f"{rule.attacker} attacker" if rule.attacker else None
    variant = None if rule.variant == "standard" else rule.variant
    if rule.metric in _GAPS and rule.variant in _RAW_VARIANTS:
        variant = ", ".join(filter(None, (_RAW, rule.variant)))
    about = ", ".join(filter(None, (attacker, variant, exposure)))
    of = f" of {rule.attribute}" if rule.attribute else ""
    return f"{METRICS[rule.metric].label}{of}{f' ({about})' if about else ''}"


def _turned(value: float, low: float | None, high: float | None) -> tuple[float, float | None, float | None]:
    """An AUC as its distance from .5: max(v, 1 - v), and the interval of that."""
    if low is not None and high is not None:
        if high < 0.5:
            low, high = 1.0 - high, 1.0 - low
        elif low < 0.5:
            low, high = 0.5, max(high, 1.0 - low)
    return max(value, 1.0 - value), low, high
