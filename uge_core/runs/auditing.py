"""The audits of a sweep: what each is asked, how far they are, and what is kept of them."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from uge_core.graph.graph import AttributedGraph
from uge_core.graph.split import LinkSplit
from uge_core.progress import OnProgress, Progress
from uge_core.runs import timing
from uge_core.runs.audits import audit_question, audit_run, sealed_record
from uge_core.runs.names import run_words
from uge_core.runs.places import Crew, Line
from uge_core.runs.plan import Planned
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import Subject
from uge_core.training.config import RunConfig


@dataclass(frozen=True, eq=False)
class AuditTask:
    """An audit as it is sent."""

    run: Subject
    options: Mapping[str, Any]
    device: str = "cpu"

    def carry_out(self, graph: AttributedGraph, split: LinkSplit, line: Line) -> Any:
        """The rows."""

        def on_share(what: str, share: float) -> None:
            line.tell((what, share))

        rows = audit_run(self.run, graph, line.floors, split=split, on_share=on_share, **self.options)
        return rows.to_json()


@dataclass(eq=False)
class _Audit:
    """One audit, as the sweep looks after it; see `places.Job`."""

    planned: Planned
    floors: str | None
    expected: float
    under_way: list[_Audit]
    graph: AttributedGraph
    store: RunStore
    asked: dict[str, Any] = field(default_factory=dict)
    started: float = 0.0
    what: str = ""
    share: float = 0.0
    where: str = ""
    checkpoint: None = None

    @property
    def config(self) -> RunConfig:
        return self.planned.config

    def begin(self) -> AuditTask:
        run = self.store.load(self.planned.run_id)
        self.asked, options = audit_question(run, self.graph, self.store, {})
        self.started = time.monotonic()
        self.under_way.append(self)
        return AuditTask(Subject.of(run), options)

    def heard(self, news: Any, where: str) -> None:
        (self.what, self.share), self.where = news, where


class Auditing:
    """All audits of a sweep."""

    def __init__(
        self, graph: AttributedGraph, store: RunStore, missing: Sequence[Planned], on_progress: OnProgress | None
    ) -> None:
        """Those of the runs `missing`, which are stored."""
        self.graph, self.store, self.on_progress = graph, store, on_progress
        known = _known_floors(graph, store)
        stored = store.timings()
        self._under_way: list[_Audit] = []
        self._jobs = [
            _Audit(
                p,
                None if (name := _floors(p.config.to_json())) in known else name,
                audit_seconds(p.config, graph, stored),
                self._under_way,
                graph,
                store,
            )
            for p in missing
        ]
        self._done: list[_Audit] = []
        self._began = time.monotonic()

    def run(self, crew: Crew) -> None:
        """Carries them out and stores each as it is done.

        Raises:
            UgeError: one that could not be made; those before it are stored.
        """
        with closing(crew.outcomes(deque(self._jobs), self._tell)) as outcomes:
            for job, outcome in outcomes:
                self._under_way.remove(job)
                rows, run_id = outcome.result(), job.planned.run_id
                self.store.save_audit(run_id, sealed_record(self.store.load(run_id), rows, job.asked))
                self._done.append(job)
                if outcome.timed:
                    took, work = time.monotonic() - job.started, timing.audit_work(job.config, self.graph)
                    self.store.note_timing(timing.timed("audit", self.graph.fingerprint, "", work, took))

    def _tell(self) -> None:
        """Says how far the first of those under way is, and all of them together."""
        if not self.on_progress or not self._under_way:
            return
        lead, *beside = self._under_way
        on = f" on {lead.where}" if lead.where else ""
        others = at_once([(job.planned.run_id, job.where, "") for job in beside])
        text = f"auditing {lead.planned.run_id} ({run_words(lead.config)}){on}{others}, {lead.what or 'waiting'}"
        whole = sum(job.expected for job in self._jobs)
        past = sum(job.expected for job in self._done) + sum(job.share * job.expected for job in self._under_way)
        spent = time.monotonic() - self._began
        # The first moments say little about the speed of now.
        left = (whole - past) * (spent / past if past > 0.1 * self._jobs[0].expected else 1.0)
        self.on_progress(Progress("auditing", len(self._done), len(self._jobs), text, left, None, left))


def audit_seconds(config: RunConfig, graph: AttributedGraph, stored: Sequence[timing.Timing]) -> float:
    """About how long an audit takes."""
    span = timing.span(stored, "audit", timing.audit_work(config, graph), graph=graph.fingerprint, kind="")
    return float((span.low * span.high) ** 0.5)


def at_once(beside: Sequence[tuple[str, str, str]], most: int = 3) -> str:
    """What is under way beside the one that is told of: its name, where, and how far; empty where nothing is."""
    named = [f"{name}{f' on {where}' if where else ''}{far}" for name, where, far in beside[:most] if where]
    more = [f"{len(beside) - most} more"] if len(beside) > most else []
    return f"; beside it {', '.join([*named, *more])}" if named else ""


def _floors(config: Mapping[str, Any]) -> str:
    """Names the floors that an audit of a run with this config reads: two with the same name read the same."""
    return json.dumps([config.get(name) for name in ("split_seed", "test_share", "validation", "unknown", "dim")])


def _known_floors(graph: AttributedGraph, store: RunStore) -> set[str]:
    """The names of floors that an earlier audit of this graph has measured."""
    runs = [run for run in store.list(audits=False, archived=True) if run.audited]
    return {_floors(run.config) for run in runs if run.dataset["fingerprint"] == graph.fingerprint}
