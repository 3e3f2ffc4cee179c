"""A report's runs trained and audited again from what their records say, and what moved since.

A record holds the whole config with its seeds, the data's fingerprint and what the audit was asked for, so that the same
training can begin anew, on this machine and with the versions that are here. Each measured number is judged by the
interval that the record gives it:

    equal           the same up to `record.TOLERANCE` (areas: `record.RANKED`)
    within          another, inside the record's 95 % interval
    moved           outside of it, or without an interval another
    no evidence     it has a value in one of the two alone
    not compared    a later version of the audit measures it otherwise

Another processor or library rounds otherwise, which training carries on: a number that stays within its interval says
that the finding holds, not that the bits are the same.
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uge_core.audit import record, version
from uge_core.errors import ConfigError, StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.graph.values import missing_policies
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.runs.audits import EVERYBODY, audit_run, sealed_record
from uge_core.runs.disclosure import Release, note_told
from uge_core.runs.names import EXTERNAL, config_words
from uge_core.runs.plan import Planned
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.sweep import train_planned
from uge_core.training.config import RunConfig

Verdict = Literal["equal", "within", "moved", "no evidence", "not compared"]
DONE, MOVED, NOT_ENOUGH = 0, 1, 3
"""Exit codes."""
_KEY = ("metric", "attribute", "attacker", "variant", "exposure")


@dataclass(frozen=True)
class Judged:
    """One number of a record beside the same measured again.

    Attributes:
        about: which, in words.
        verdict: see the module.
        said: the record's value, None where the evidence was insufficient.
        low: lower end of the record's 95 % interval, or None.
        high: its upper end.
        anew: the value now.
        n: people, links, pairs or edges it rests on now, or None.
        why: a remark, or "".
    """

    about: str
    verdict: Verdict
    said: float | None
    low: float | None
    high: float | None
    anew: float | None
    n: int | None
    why: str = ""

    @property
    def words(self) -> str:
        """The finding in a line."""
        interval = "" if self.low is None or self.high is None else f" [{self.low:.4f}, {self.high:.4f}]"
        count = "" if self.n is None else f" (n = {self.n:,})"
        why = f"; {self.why}" if self.why else ""
        return f"{self.about}: the report says {_number(self.said)}{interval}, now {_number(self.anew)}{count}{why}"


@dataclass(frozen=True)
class Outcome:
    """What came of one record.

    Attributes:
        run_id: the run it is about, which the new one has too.
        label: its settings in words.
        sha256: of the record.
        changed: the record is not as it was written; its numbers are compared all the same.
        judged: its rows and their cells; none where nothing was trained.
        remarks: what is to be known: other versions, or why nothing was compared.
        anew: the new record, or None.
    """

    run_id: str
    label: str
    sha256: str
    changed: bool
    judged: tuple[Judged, ...]
    remarks: tuple[str, ...]
    anew: Mapping[str, Any] | None

    @property
    def counts(self) -> Mapping[str, int]:
        """How many numbers have each verdict."""
        return Counter(j.verdict for j in self.judged)

    @property
    def code(self) -> int:
        """0 nothing moved, 1 something did, 3 not enough evidence or not the same data."""
        if self.changed or self.counts["moved"]:
            return MOVED
        unknown = self.counts["no evidence"] + self.counts["not compared"]
        return NOT_ENOUGH if unknown or not self.judged else DONE

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "run_id": self.run_id,
            "sha256": self.sha256,
            "changed": self.changed,
            "code": self.code,
            "counts": dict(self.counts),
            "remarks": list(self.remarks),
            "judged": [vars(j) for j in self.judged if j.verdict not in ("equal", "within")],
            "sha256_anew": None if self.anew is None else self.anew["sha256"],
        }


def rerun(
    reports: Sequence[Mapping[str, Any]],
    graph: AttributedGraph,
    store: RunStore,
    *,
    device: str = "auto",
    deterministic: bool = False,
    source: dict[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[Outcome]:
    """Trains and audits the runs of some records again and compares, a run at a time.

    A run that `store` has already, from a rerun that was cut off, is not trained twice.

    Args:
        reports: records of one graph, as `record.read` gave them.
        graph: their data as they are now; the fingerprint is checked before anything is trained.
        store: where the new runs go; another than that of the reported ones, as they have the same ids.
        device: auto, cpu or cuda.
        deterministic: only operations that give the same bits each time.
        source: how to load the graph again, kept with the runs.
        on_progress: called as the work goes on.

    Raises:
        ConfigError: a config, or what an audit was asked for, is not of this version.
        TrainingDiverged: see `sweep`.
    """
    planned: dict[str, Planned] = {}
    why_not: dict[str, str] = {}
    for report in reports:
        run_id = str(report["run_id"])
        if reason := _why_not(report, graph):
            why_not[run_id] = reason
            continue
        config = RunConfig.from_json(dict(report["config"]))
        # By the config, whatever the record calls it: where the two differ, a later engine trains otherwise.
        planned[run_id] = Planned(config.run_id(graph.fingerprint), config)
    before = {p.run_id for p in planned.values() if (there := store.find(p.run_id)) and there.status == "finished"}
    unique = list({p.run_id: p for p in planned.values()}.values())
    if unique:
        train_planned(
            graph, unique, store, device=device, deterministic=deterministic, source=source, on_progress=on_progress
        )
    began = time.monotonic()
    for done, report in enumerate(reports):
        run_id = str(report["run_id"])
        changed = report.get("sha256") != record.digest(report)
        label, said = config_words(report["config"]), str(report.get("sha256"))
        if run_id in why_not:
            yield Outcome(run_id, label, said, changed, (), (why_not[run_id],), None)
            continue
        run = store.load(planned[run_id].run_id)

        def on_share(what: str, share: float, done: int = done, run: StoredRun = run) -> None:
            if on_progress:
                past = done + share
                # The first moments say little about the speed of now.
                left = (len(reports) - past) * (time.monotonic() - began) / past if past > 0.1 else None
                text = f"auditing {run.id}, {what}"
                on_progress(Progress("auditing", round(100 * past), 100 * len(reports), text, left, None, left))

        anew = _audited(run, report, graph, store, on_share)
        remarks = [] if run.id == run_id else [f"this version calls the run {run.id}: it trains otherwise"]
        if run.id in before:
            remarks.append(f"an earlier rerun had trained it; remove {store.root} to begin anew")
        made_by = int(report.get("audit_version", 1))
        if made_by != version.VERSION:
            remarks.append(f"version {made_by} of the audit made the report, version {version.VERSION} measured now")
        yield Outcome(run_id, label, said, changed, tuple(compare(report, anew)), tuple(remarks), anew)


def _why_not(report: Mapping[str, Any], graph: AttributedGraph) -> str:
    """Why a record's run cannot be trained again on this graph, or ""."""
    wanted = report["dataset"]["fingerprint"]
    if wanted != graph.fingerprint:
        return (
            f"not the same data: the report is of {report['dataset']['name']} with fingerprint {wanted[:12]}, "
            f"{graph.name} has {graph.fingerprint[:12]}; name the data it was made of with --data DATA"
        )
    if report["config"].get("method") == EXTERNAL:
        return "its embedding was not trained here, so there is nothing to train again; uge verify measures it anew"
    return ""


def _audited(
    run: StoredRun,
    report: Mapping[str, Any],
    graph: AttributedGraph,
    store: RunStore,
    on_share: Callable[[str, float], None],
) -> dict[str, Any]:
    """The new run's record, asked for what the old one was asked for."""
    asked = dict(report.get("asked") or {})
    sizes = asked.get("sizes") or {}
    if not asked.get("exact"):
        policies = missing_policies(graph, run.config.get("unknown"))
        note_told(store, graph, policies, Release({name: dict(told) for name, told in sizes.items()}))

    try:
        rows = audit_run(run, graph, store.floors, on_share=on_share, **{**EVERYBODY, **asked}).to_json()
    except TypeError:
        raise ConfigError(
            f"the report's audit of run {run.id} was asked for what this version does not know ({', '.join(asked)}); "
            "install the version that made it"
        ) from None
    made = sealed_record(run, rows, asked)
    store.save_audit(run.id, made)
    if "only" in report:
        made = record.only(made, report["only"])
    back: dict[str, Any] = json.loads(record.canonical(made))
    return back


def compare(report: Mapping[str, Any], anew: Mapping[str, Any]) -> Iterator[Judged]:
    """Each number of a record, of rows and their cells, beside the same of another record."""
    changes = version.since(int(report.get("audit_version", 1)))
    now = {_key(row): row for row in anew["rows"]}
    for row in report["rows"]:
        words = ", ".join(str(row[k]) for k in _KEY if row.get(k) is not None)
        other = now.pop(_key(row), None)
        otherwise = next((c.words for c in changes if c.kind != "added" and c.fits(row)), "")
        if other is None:
            verdict: Verdict = "not compared" if otherwise else "no evidence"
            yield Judged(words, verdict, row["value"], row["ci_low"], row["ci_high"], None, None, "not measured now")
            continue
        yield _judged(words, row, other, otherwise)
        cells = {(c["a"], c["b"]): c for c in other.get("cells") or ()}
        for cell in row.get("cells") or ():
            beside = cells.pop((cell["a"], cell["b"]), None)
            if beside is not None:
                yield _judged(f"{words}, {_name(cell)}", cell, beside, otherwise, area=row["metric"] == "auc")
            elif not cell.get("withheld"):
                about, verdict = f"{words}, {_name(cell)}", "not compared" if otherwise else "no evidence"
                yield Judged(about, verdict, cell["value"], None, None, None, None, otherwise or "not measured now")
        for cell in cells.values():
            if not cell.get("withheld"):
                about, verdict = f"{words}, {_name(cell)}", "not compared" if otherwise else "no evidence"
                why = otherwise or "not in the report"
                yield Judged(about, verdict, None, None, None, cell["value"], cell["n"], why)
    for row in now.values():
        if not any(c.kind == "added" and c.fits(row) for c in changes):
            words = ", ".join(str(row[k]) for k in _KEY if row.get(k) is not None)
            yield Judged(words, "no evidence", None, None, None, row["value"], row["n"], "not in the report")


def _name(cell: Mapping[str, Any]) -> str:
    return str(cell["a"]) if cell["b"] is None else f"{cell['a']}-{cell['b']}"


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in _KEY)


def _judged(
    words: str, old: Mapping[str, Any], new: Mapping[str, Any], otherwise: str, *, area: bool = False
) -> Judged:
    said, anew, low, high = old["value"], new["value"], old["ci_low"], old["ci_high"]
    tolerance = record.RANKED if area or old.get("metric") == "auc" else record.TOLERANCE
    why = "" if old["n"] == new["n"] else f"n was {old['n']}"
    if said is None and anew is None:
        verdict: Verdict = "equal"
    elif said is None or anew is None:
        verdict = "no evidence"
    elif math.isclose(said, anew, rel_tol=tolerance, abs_tol=tolerance):
        verdict = "equal"
    elif low is not None and high is not None and low <= anew <= high and low <= said <= high:
        verdict = "within"
    else:
        verdict = "moved"
    if verdict in ("moved", "no evidence") and otherwise:
        verdict, why = "not compared", otherwise
    elif verdict == "moved" and said is not None and low is not None and high is not None and not low <= said <= high:
        why = "; ".join(filter(None, (why, "the report's own value lies outside its interval")))
    return Judged(words, verdict, said, low, high, anew, new["n"], why)


def _number(value: float | None) -> str:
    return "not enough evidence" if value is None else f"{value:.4f}"


def exit_code(outcomes: Sequence[Outcome]) -> int:
    """Of several: 1 where something moved, else 3 where something is not known."""
    codes = {o.code for o in outcomes}
    return next((code for code in (MOVED, NOT_ENOUGH) if code in codes), DONE)


def other_versions(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In which versions and machines two stamps of `machine.stamp` differ, a text each."""
    flat = [
        {k: v for k, v in stamp.items() if k in ("uge_core", "python", "platform", "device")}
        | {str(k): v for k, v in (stamp.get("packages") or {}).items()}
        for stamp in (then, now)
    ]
    return [f"{k} {flat[0][k]} then, {v} now" for k, v in flat[1].items() if k in flat[0] and flat[0][k] != v]


def trained_with(run: StoredRun) -> Mapping[str, Any]:
    """The stamp of a stored run, empty where it cannot be read."""
    try:
        return run.environment
    except StoreError:
        return {}
