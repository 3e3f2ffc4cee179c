"""What-if scenarios as a report's JSON and CSV hold them: what was edited, and what each run gave before and after.

Numbers are those of the What-if page in two or three decimals; cells, remarks and numbers of people are left out, as
what one person's edit changes in them tells that person's group. An edit's words name the
nodes that it is about, so a scenario goes into a report only where it is asked for. `sha256` is that of data and edits,
`record_sha256` that of the record's canonical bytes without this field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from uge_core.audit.record import SCENARIO_NAME, canonical
from uge_core.errors import ConfigError
from uge_core.explore.whatif.scenario import Scenarios
from uge_core.runs.disclosure import coarse_row

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore

SENSITIVE = (
    "Sensitive personal data: the edits name people and what becomes of their values. Keep this report as you keep the "
    "attribute itself."
)


def naming(store: RunStore, ids: Iterable[str]) -> list[str]:
    """The names of those scenarios whose edits name people."""
    kept = Scenarios(store)
    return [s.name for s in (kept.load(i).scenario for i in ids) if s.nodes]


def scenario_ids(store: RunStore, asked: Sequence[str]) -> list[str]:
    """The ids of stored scenarios that are named by id or by name.

    Raises:
        ConfigError: there is none, or several have the name.
    """
    stored = {s.scenario.id: s.scenario.name for s in Scenarios(store).list()}
    ids = []
    for word in asked:
        fitting = [i for i, name in stored.items() if word in (i, name)]
        if len(fitting) != 1:
            known = ", ".join(f"{i} ({name})" for i, name in stored.items()) or "none"
            what = f"{len(fitting)} scenarios are called" if fitting else "there is no scenario"
            raise ConfigError(f"{what} {word[:200]!r}; name one by its id; stored: {known}")
        ids += fitting
    return list(dict.fromkeys(ids))


def scenario_records(store: RunStore, ids: Iterable[str], run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """One `uge-whatif/1` record a scenario: name, hashes, the edits in words, and by run the rows.

    Raises:
        StoreError: there is no such scenario, or it cannot be read.
    """
    kept = Scenarios(store)
    out = []
    for scenario_id in ids:
        scenario = kept.load(scenario_id).scenario
        results = [
            {
                "run_id": run_id,
                "tier": answer["tier"],
                "why_not_re_encoded": answer["why_not"] or None,
                "rows": [
                    {
                        "tier": pair["tier"],
                        "thresholds": pair["thresholds"],
                        **{side: coarse_row(pair[side]) for side in ("before", "after")},
                    }
                    for pair in answer["rows"]
                ],
            }
            for run_id, answer in kept.results(scenario_id, run_ids).items()
        ]
        record = {
            "schema": SCENARIO_NAME,
            "name": scenario.name,
            "sha256": scenario.hash,
            "data": scenario.data,
            "edits": [e.words for e in scenario.edits],
            "warning": SENSITIVE if scenario.nodes else None,
            "results": results,
        }
        out.append(record | {"record_sha256": scenario_digest(record)})
    return out


def scenario_digest(record: Mapping[str, Any]) -> str:
    """The SHA-256 of the canonical bytes of such a record without its `record_sha256`."""
    return hashlib.sha256(canonical({k: v for k, v in record.items() if k != "record_sha256"})).hexdigest()


def scenario_lines(records: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Their rows for a CSV table, a line before and a line after each; a scenario that was not measured is one line."""
    for record in records:
        edits = "; ".join(record["edits"])
        head = {"scenario": record["name"], "sha256": record["sha256"]}
        head["edits"] = f"{record['warning']} {edits}" if record["warning"] else edits
        if not record["results"]:
            yield head | {"kind": "scenario, not measured"}
        for result in record["results"]:
            for pair in result["rows"]:
                for side in ("before", "after"):
                    about = {"run_id": result["run_id"], "tier": pair["tier"], "kind": f"scenario, {side}"}
                    yield head | about | pair[side]
