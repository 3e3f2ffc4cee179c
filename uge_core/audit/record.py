"""The record of an audit, `uge-audit/1`: its shape, its canonical bytes and its SHA-256.

The shape is one JSON schema (draft 2020-12), `uge-audit-1.json` beside this file, which `runs.schema` makes from the
dataclasses; a record is checked against that very file. Two records that say the same have the same canonical bytes,
however
they were written: UTF-8 text, keys sorted by code point, no spaces, letters as themselves, integers
as such, floats as Python's shortest decimal that reads back the same, -0.0 as 0.0. NaN and infinities
are refused: what cannot be measured is null. `sha256` is the SHA-256 of the canonical bytes of the
record without that field.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

from uge_core.errors import ConfigError, RecordError

NAME = "uge-audit/1"
SCENARIO_NAME = "uge-whatif/1"
"""Of the what-if scenarios that may stand behind the records of a report."""
SCHEMA_FILE = "uge-audit-1.json"
TOLERANCE = 1e-9
"""Difference up to which two measured numbers are the same, relative above 1.

Two processors add up in different orders, and two sums of n numbers differ by at most 2 (n - 1) u sum |x_i|, u = 2^-53
(Higham 2002, Sec. 4.2): means of a million numbers of at most 1 by 2.2e-10. A gap is a difference of two such means and
an interval's end one of two such numbers, so the bound is no share of what is left. Under all the switches of
tests/test_processors.py the figures of an audit differ by at most 1e-12.
"""
RANKED = 1e-6
"""The same of areas under the ROC curve.

These count pairs of people. Two whose scores are nearer than the rounding above may change places, and each such pair
is worth 1 / (pairs). Of forty million pairs with scores in 0 to 1 a ten-thousandth is expected to be nearer than 1e-12.
"""
_MOST_BYTES = 2**28
_KEY = ("metric", "attribute", "attacker", "variant", "exposure")
_CELL = ("a", "b")
_AREAS = ("value", "ci_low", "ci_high", "floor_random")
_MISSING = object()


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(
        resources.files("uge_core.audit").joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    )
    return schema


def canonical(record: Any) -> bytes:
    """The canonical bytes of a record, or of any JSON value; see the module's text.

    Raises:
        RecordError: a number that is not finite, or something that JSON does not have.
    """
    try:
        text = json.dumps(_normal(record), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise RecordError("the record is nested too deeply; an audit record has five levels") from None
    # Half a letter (a lone surrogate, from a file name that is no UTF-8) is written as JSON's own escape.
    return text.encode("utf-8", "backslashreplace")


def _normal(value: Any) -> Any:
    """`value` with -0.0 as 0.0 and letters that came in two halves as one."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        )
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RecordError(f"the record holds {value}; allowed: finite numbers, or null for what was not measured")
        return value + 0.0
    if isinstance(value, list | tuple):
        return [_normal(v) for v in value]
    if isinstance(value, Mapping) and all(isinstance(k, str) for k in value):
        return {_normal(k): _normal(v) for k, v in value.items()}
    raise RecordError(f"the record holds a {type(value).__name__}; allowed: what JSON has")


def digest(record: Mapping[str, Any]) -> str:
    """The SHA-256 of a record's canonical bytes without its `sha256`, as 64 hex digits."""
    return hashlib.sha256(canonical({k: v for k, v in record.items() if k != "sha256"})).hexdigest()


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the SHA-256 of what it holds now."""
    content = {k: v for k, v in record.items() if k != "sha256"}
    return content | {"sha256": digest(content)}


def about(rows: Iterable[Mapping[str, Any]], attributes: Sequence[str], run_id: str) -> list[Mapping[str, Any]]:
    """The rows about some attributes, about these jointly ("a+b"), and about none.

    Raises:
        ConfigError: there is no row about such an attribute.
    """

    def parts(row: Mapping[str, Any]) -> list[str]:
        # A leakage row is one attribute's, whatever its name holds.
        return [row["attribute"]] if row["attacker"] else row["attribute"].split("+")

    rows = list(rows)
    present = {name.lower(): name for row in rows if row["attribute"] for name in parts(row)}
    for name in attributes:
        if name.lower() not in present:
            raise ConfigError(f"run {run_id} was not audited for {name!r}; allowed: {', '.join(present.values())}")
    wanted = {present[name.lower()] for name in attributes}
    return [r for r in rows if not r["attribute"] or r["attribute"] in wanted or wanted.issuperset(parts(r))]


def only(record: Mapping[str, Any], attributes: Sequence[str]) -> dict[str, Any]:
    """The record with the rows that `about` keeps, sealed anew."""
    return seal({**record, "only": list(attributes), "rows": about(record["rows"], attributes, record["run_id"])})


def covers(asked: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Whether an audit that was asked for so holds all that another holds; both as in `runs.audit_record`."""

    def wider(name: str, everything: Any) -> bool:
        now, then = asked.get(name), earlier.get(name)
        return now == everything or (then != everything and set(then or ()) <= set(now or ()))

    more = _people(asked) >= _people(earlier)
    return more and wider("attributes", None) and wider("attackers", object()) and wider("crossings", True)


def _people(asked: Mapping[str, Any]) -> float:
    """How many people an audit drew, of whom it did not measure all."""
    return float(asked.get("people", math.inf))


def read(path: str | Path) -> list[dict[str, Any]]:
    """The records of a JSON file: one, or the list that a sweep or a report holds, without its what-if scenarios.

    Raises:
        RecordError: the file cannot be read or holds no such record.
    """
    path = Path(path)
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RecordError(f"{path}: is larger than {_MOST_BYTES:,} bytes, which no audit record is")
        content = json.loads(
            path.read_bytes().decode("utf-8-sig"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_once
        )
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error}); name a report's JSON file") from None
    except UnicodeDecodeError:
        raise RecordError(f"{path}: is not UTF-8 text; name what uge audit --json printed") from None
    except RecursionError:
        raise RecordError(f"{path}: is nested too deeply for an audit record") from None
    except ValueError as error:
        raise RecordError(f"{path}: is no JSON of ours ({error}); name what uge audit --json printed") from None
    records = content if isinstance(content, list) else [content]
    records = [r for r in records if not (isinstance(r, dict) and r.get("schema") == SCENARIO_NAME)]
    for record in records:
        name = record.get("schema") if isinstance(record, dict) else None
        if name != NAME:
            shown = "no schema" if name is None else f"schema {str(name)[:40]!r}"
            raise RecordError(f"{path}: holds {shown}; allowed: {NAME!r}, what uge audit --json prints")
    if not records:
        raise RecordError(f"{path}: holds an empty list; name what uge audit --json printed")
    return records


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not allowed, null is what was not measured")


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _refuse(word)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for key, value in pairs:
        if key in members:
            # One reader would take the first, another the last.
            raise ValueError(f"the key {key[:40]!r} stands twice in one object")
        members[key] = value
    return members


def faults(record: Any) -> Iterator[str]:
    """What does not fit the schema, each as a place and what is wrong there; nothing where all fits."""
    told: set[tuple[tuple[Any, ...], str]] = set()
    for error in _validator().iter_errors(record):
        place = tuple(error.absolute_path)
        # Of a value of another type nothing else is said; the first missing key of an object speaks for all.
        if not told & {(place, "type"), (place, error.validator)}:
            told.add((place, error.validator))
            yield from _fault(error, "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in place).lstrip("."))


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # takes a third of a second

    return Draft202012Validator(_schema())


def _fault(error: Any, where: str) -> Iterator[str]:
    """One of jsonschema's errors in our words: where, what was found, what is allowed."""
    place, value, schema = where or "the record", error.instance, error.schema
    match error.validator:
        case "required":
            yield from (f"{place}: {key} is missing" for key in schema["required"] if key not in value)
        case "additionalProperties":
            known = schema["properties"]
            for key in (key for key in value if key not in known):
                inside = f"{where}.{key}" if where else key
                yield f"{inside}: is no field of {NAME}; allowed: {', '.join(known)}"
        case "minimum" | "maximum":
            yield (
                f"{place}: found {value}; allowed: {schema.get('minimum', -math.inf)} to "
                f"{schema.get('maximum', math.inf)}"
            )
        case "type":
            types = schema["type"]
            yield f"{place}: found {_brief(value)}; allowed: {types if isinstance(types, str) else ' or '.join(types)}"
        case "pattern":
            yield f"{place}: found {_brief(value)}; allowed: text that fits {schema['pattern']}"
        case _:
            allowed = schema.get("enum", [schema.get("const")])
            yield f"{place}: found {_brief(value)}; allowed: {', '.join(map(_brief, allowed))}"


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class Differences:
    """Where a record and the same one made anew differ, each place in words.

    Attributes:
        changed: fields of the run, and of rows that both have.
        missing: rows that are measured anew and are not in the record.
        surplus: rows of the record that are not measured anew.
        added: rows that only later versions of the audit measure.
        dropped: rows that only earlier versions measured.
        passed: rows of both whose figures were not compared.
    """

    changed: tuple[str, ...]
    missing: tuple[str, ...]
    surplus: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    passed: tuple[str, ...]

    @property
    def words(self) -> str | None:
        """The first of each kind and how many more, or None where nothing is changed, missing or surplus."""
        kinds = (
            (self.changed, "differences"),
            (self.missing, "rows that the report lacks"),
            (self.surplus, "rows that are not measured anew"),
        )
        said = (texts[0] + (f" ({len(texts)} {words})" if texts[1:] else "") for texts, words in kinds if texts)
        return "; ".join(said) or None


_Rows = Callable[[Mapping[str, Any]], bool]


def _none(row: Mapping[str, Any]) -> bool:
    return False


def differences(
    reported: Mapping[str, Any],
    recomputed: Mapping[str, Any],
    *,
    added: _Rows = _none,
    dropped: _Rows = _none,
    passed: _Rows = _none,
    exact: bool = False,
) -> Differences:
    """Every field in which a record differs from the same one made anew.

    Rows are paired by metric, attribute, attacker, variant and exposure, cells by their groups, whatever their order.
    Text, counts and what is missing are compared exactly, the rows' measured numbers up to `TOLERANCE` or `RANKED`.
    `sha256`, `policy` and `only` are about the record itself and left out.

    Args:
        reported: the record.
        recomputed: the same made anew.
        added: which rows only later versions of the audit measure.
        dropped: which rows only earlier versions measured.
        passed: of which rows the figures are not compared, but who is counted and what there is.
        exact: measured numbers are compared exactly too, as where nothing was measured again.
    """
    changed: list[str] = []
    for key in dict.fromkeys([*recomputed, *reported]):
        if key not in ("sha256", "policy", "only", "rows"):
            changed += _difference(reported.get(key, _MISSING), recomputed.get(key, _MISSING), key, 0.0)
    before, after = reported["rows"], recomputed["rows"]
    apart: dict[str, list[str]] = {"missing": [], "surplus": [], "added": [], "dropped": [], "passed": []}
    for i, j in _paired(before, after, _KEY):
        if i is None:
            assert j is not None
            where, new = f"row {j + 1} of {len(after)} measured anew ({_words(after[j])})", after[j]
            apart["added"] += [where] if added(new) else []
            apart["missing"] += [] if added(new) else _difference(_MISSING, new, where, 0.0)
            continue
        where, old = f"row {i + 1} of {len(before)} ({_words(before[i])})", before[i]
        if j is None:
            apart["dropped"] += [where] if dropped(old) else []
            apart["surplus"] += [] if dropped(old) else _difference(old, _MISSING, where, 0.0)
            continue
        old, new = before[i], after[j]
        if passed(new):
            apart["passed"].append(where)
            old, new = _counted(old), _counted(new)
        areas = _AREAS if new["metric"] == "auc" else ()
        for names, tolerance in ((areas, RANKED), (set(old).union(new).difference(areas), TOLERANCE)):
            tolerance = 0.0 if exact else tolerance
            one, other = ({name: value for name, value in row.items() if name in names} for row in (old, new))
            changed += _difference(one, other, where, tolerance)
    return Differences(tuple(changed), **{kind: tuple(texts) for kind, texts in apart.items()})


def _counted(row: Mapping[str, Any]) -> dict[str, Any]:
    """What a row is about, who is counted, and whether that is evidence."""
    kept = {name: row.get(name, _MISSING) for name in (*_KEY, "n", "evidence", "direction")}
    return kept | {"cells": [{name: cell[name] for name in (*_CELL, "n", "excluded")} for cell in row["cells"]]}


def first_difference(reported: Mapping[str, Any], recomputed: Mapping[str, Any], *, exact: bool = False) -> str | None:
    """The first of `differences`, those of the run before those of rows, or None."""
    parts = differences(reported, recomputed, exact=exact)
    return next(iter((*parts.changed, *parts.missing, *parts.surplus)), None)


def _paired(before: Sequence[Any], after: Sequence[Any], key: Sequence[str]) -> Iterator[tuple[int | None, int | None]]:
    """Positions of entries that are about the same; of what is left, of those that stand in one place; then alone."""
    places: dict[tuple[Any, ...], list[int]] = {}
    for j, entry in enumerate(after):
        places.setdefault(_about(entry, key), []).append(j)
    partner: list[int | None] = []
    for entry in before:
        same = places.get(_about(entry, key))
        partner.append(same.pop(0) if same else None)
    left = set(range(len(after))).difference(partner)
    for i, at in enumerate(partner):
        if at is None and i in left:
            left.remove(i)
            partner[i] = i
    yield from enumerate(partner)
    yield from ((None, j) for j in sorted(left))


def _about(entry: Any, key: Sequence[str]) -> tuple[Any, ...]:
    return tuple(canonical(entry.get(name)) for name in key) if isinstance(entry, dict) else ()


def _words(row: Any) -> str:
    return ", ".join(str(row[k]) for k in _KEY if row.get(k) is not None)


def _difference(reported: Any, anew: Any, where: str, tolerance: float) -> Iterator[str]:
    if isinstance(reported, dict) and isinstance(anew, dict):
        for key in dict.fromkeys([*anew, *reported]):
            yield from _difference(reported.get(key, _MISSING), anew.get(key, _MISSING), f"{where}, {key}", tolerance)
    elif isinstance(reported, list) and isinstance(anew, list):
        if len(reported) != len(anew):
            yield f"{where}: the report has {len(reported)} entries, measured anew {len(anew)}"
            return
        for i, j in _paired(reported, anew, _CELL):
            if i is not None and j is not None:
                yield from _difference(reported[i], anew[j], f"{where}, {i + 1}", tolerance)
            elif i is not None:
                yield from _difference(reported[i], _MISSING, f"{where}, {i + 1}", tolerance)
    elif not _same(reported, anew, tolerance):
        old, new = ("nothing" if v is _MISSING else _brief(v) for v in (reported, anew))
        yield f"{where}: the report says {old}, measured anew {new}"


def _same(reported: Any, anew: Any, tolerance: float) -> bool:
    if isinstance(reported, float) and isinstance(anew, float):
        return math.isclose(reported, anew, rel_tol=tolerance, abs_tol=tolerance)
    return type(reported) is type(anew) and bool(reported == anew)
