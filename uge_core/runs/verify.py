"""Whether a report still says what was measured: its SHA-256, its shape, its policy, and its numbers anew."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from uge_core.audit import policy, record, version
from uge_core.errors import ConfigError, GraphError, StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.registry import unknown_name
from uge_core.runs.audits import EVERYBODY, audit_run, sealed_record
from uge_core.runs.names import EXTERNAL
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.training.config import RunConfig

EQUAL, DIFFERS, NOT_RECOMPUTED = 0, 1, 3
"""Exit codes."""


@dataclass(frozen=True)
class Finding:
    """What one of the checks found.

    Attributes:
        what: sha256, shape, policy, version or audit; of a report's file, also content, record, scenario, command,
            note or figures.
        code: EQUAL, DIFFERS or NOT_RECOMPUTED.
        text: the same in words.
        about: the run or scenario that it is about, where a file holds several.
    """

    what: str
    code: int
    text: str
    about: str = ""

    @property
    def words(self) -> str:
        """The code in words."""
        return {EQUAL: "equal", DIFFERS: "DIFFERS", NOT_RECOMPUTED: "NOT CHECKED"}[self.code]


def verify(
    report: Mapping[str, Any], store: RunStore, load: Callable[[StoredRun], AttributedGraph], *, measure: bool = True
) -> Iterator[Finding]:
    """Checks a record against itself, and against its stored run where that is at hand.

    Nothing that the store keeps of an audit is believed: the stored embedding is measured again, random
    floors included, with what the record says was asked. Of a record that an earlier version of the audit made,
    what both versions measure alike is compared.

    Args:
        report: what `record.read` gave.
        store: where the run may be.
        load: the run's graph; may raise GraphError or StoreError where it is not there or another.
        measure: measure the embedding again; else the store's own audit is believed, and compared.

    Yields:
        The findings, the quick ones first.
    """
    said, digest = report.get("sha256"), record.digest(report)
    if said == digest:
        yield Finding("sha256", EQUAL, f"{digest} is that of the content")
    else:
        text = f"the report says {said}, its content has {digest}: it was changed after it was written"
        yield Finding("sha256", DIFFERS, text)
    faults = list(record.faults(report))
    if faults:
        more = f" ({len(faults) - 1} more)" if len(faults) > 1 else ""
        yield Finding("shape", DIFFERS, f"{faults[0]}{more}")
        yield Finding("audit", NOT_RECOMPUTED, "not measured anew, as the report has not the shape of one")
        return
    yield Finding("shape", EQUAL, f"{record.NAME}, {len(report['rows'])} rows")
    if "policy" in report:
        try:
            misjudged = policy.first_misjudged(report["policy"], report["rows"])
        except ConfigError as error:
            misjudged = str(error)
        text = misjudged or f"the verdict {report['policy']['verdict']!r} follows from the rows"
        yield Finding("policy", DIFFERS if misjudged else EQUAL, text)
    if _version(report) < version.FIRST and _of_this_engine(report):
        text = (
            f"the report says {report.get('audit_version', 'nothing')}, but runs of this package's engine were measured"
        )
        yield Finding("version", DIFFERS, f"{text} by version {version.FIRST} of the audit or a later one")
    try:
        anew = _measured_anew(report, store, load) if measure else _as_stored(report, store)
    except (StoreError, GraphError, ConfigError) as error:
        yield Finding("audit", NOT_RECOMPUTED, f"not {'measured anew' if measure else 'compared'}: {error}")
        return
    yield _compared(report, anew) if measure else _compared_quickly(report, anew)


def _as_stored(report: Mapping[str, Any], store: RunStore) -> dict[str, Any]:
    """The audit that the store keeps of the report's run."""
    stored = store.load(report["run_id"]).audit
    if stored is None:
        raise StoreError(f"run {report['run_id']} has no audit; run uge audit {report['run_id']} first")
    if stored.get("asked") != report.get("asked"):
        raise StoreError(f"run {report['run_id']} was audited in another way since; leave --quick out")
    return record.only(stored, report["only"]) if "only" in report else stored


def _compared_quickly(report: Mapping[str, Any], stored: Mapping[str, Any]) -> Finding:
    differing = record.first_difference(report, stored, exact=True)
    if differing:
        return Finding("audit", DIFFERS, f"{differing} (as the store keeps it)")
    return Finding("audit", EQUAL, f"as the store keeps it, {len(report['rows'])} rows; nothing was measured anew")


def _compared(report: Mapping[str, Any], anew: Mapping[str, Any]) -> Finding:
    """The finding on a record and the same measured anew."""
    made_by = _version(report)
    changes = version.since(made_by)
    report = {**report, "audit_version": version.VERSION}

    def fits(kind: str) -> Callable[[Mapping[str, Any]], bool]:
        return lambda row: any(change.kind == kind and change.fits(row) for change in changes)

    # What a later version measures otherwise in some graphs may well be the same in this one.
    outcome = record.differences(report, anew, added=fits("added"), dropped=fits("dropped"))
    if outcome.words:
        outcome = record.differences(report, anew, added=fits("added"), dropped=fits("dropped"), passed=fits("figures"))
    if outcome.words:
        return Finding("audit", DIFFERS, outcome.words)
    rows = len(report["rows"])
    equal = rows - len(outcome.dropped) - len(outcome.passed)
    text = f"measured anew from the embedding of run {report['run_id']}: "
    parts = [f"{text}all {rows} rows are equal" if equal == rows else f"{text}{equal} of {rows} rows are equal"]
    for kind, those, said in (
        ("added", outcome.added, f"not in the report, as version {made_by} of the audit did not measure them"),
        ("dropped", outcome.dropped, f"not measured anew, as version {version.VERSION} of the audit no longer does"),
        ("figures", outcome.passed, f"not compared, as version {version.VERSION} of the audit measures them otherwise"),
    ):
        if those:
            more = f" and {len(those) - 1} more" if those[1:] else ""
            parts.append(f"{said}: {those[0]}{more}")
            parts += dict.fromkeys(change.words for change in changes if change.kind == kind)
    return Finding("audit", NOT_RECOMPUTED if outcome.passed else EQUAL, "; ".join(parts))


def _measured_anew(
    report: Mapping[str, Any], store: RunStore, load: Callable[[StoredRun], AttributedGraph]
) -> dict[str, Any]:
    """The report's record, made again from the stored run; its rows are left as they are where the run is another."""
    run = store.load(report["run_id"])
    made_by = _version(report)
    if made_by > version.VERSION:
        raise ConfigError(
            f"version {made_by} of the audit made the report, this package has version {version.VERSION}; "
            "install a newer one"
        )
    asked = report.get("asked", {})
    known = set(inspect.signature(audit_run).parameters) - {
        "run",
        "graph",
        "floors",
        "split",
        "on_progress",
        "on_share",
    }
    if not set(asked) <= known:
        raise ConfigError(unknown_name("option of an audit", min(set(asked) - known), sorted(known)))
    report = {**report, "audit_version": version.VERSION}
    head = sealed_record(run, report["rows"], asked)
    if record.first_difference(report, head):
        return head
    graph = load(run)
    rows = audit_run(run, graph, None, **{**EVERYBODY, **asked}).to_json()
    anew = sealed_record(run, rows, asked)
    if "only" in report:
        anew = record.only(anew, report["only"])
    # As written and read back: what a tuple and a list share.
    back: dict[str, Any] = json.loads(record.canonical(anew))
    return back


def _version(report: Mapping[str, Any]) -> int:
    """The version of the audit that made a record; the field is newer than the first."""
    return int(report.get("audit_version", 1))


def _of_this_engine(report: Mapping[str, Any]) -> bool:
    """Whether the run's id is one that this package gives; that of an embedding from elsewhere does not tell."""
    config = report["config"]
    if config["method"] == EXTERNAL:
        return False
    return RunConfig.from_json(dict(config)).run_id(report["dataset"]["fingerprint"]) == str(report["run_id"])


def exit_code(findings: list[Finding]) -> int:
    """0 where all was checked and is equal, 1 where something differs, 3 where the numbers were not measured anew."""
    codes = {f.code for f in findings}
    return next((code for code in (DIFFERS, NOT_RECOMPUTED) if code in codes), EQUAL)
