"""The queue and the stored runs as what the Runs page shows; nothing is computed anew here."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from uge_core.dashboard.jobs import comparison, measure, projection
from uge_core.dashboard.jobs.queue import ACTIVE, DAMAGED, WAITING, Job, Queue
from uge_core.dashboard.jobs.reading import KIND
from uge_core.datasets import lasting
from uge_core.progress import rounded
from uge_core.registry import find
from uge_core.runs.names import config_parts, config_words, method_class, settings_apart
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.timing import duration
from uge_core.training import checkpoint
from uge_core.training.config import split_names
from uge_core.views.points import folds

_SHOWN = 5  # jobs that are over
_MACHINE = re.compile(r" on (\S+ \([0-9a-f]{4}\))")  # a node of a cluster, as progress names it
_FEW = 3  # cells of a row's runs that are shown
_STAGES = {
    "starting": "Loading the data",
    "fetching": "Fetching the data",
    "training": "Training",
    "auditing": "Auditing",
    "projecting": "Projecting",
    "comparing": "Comparing",
    "measuring": "Measuring",
    "reading": "Reading",
}
STATUS = {
    "queued": "Waiting",
    "running": "Running",
    "finished": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "interrupted": "Interrupted",
}


@dataclass(frozen=True)
class JobCard:
    """One job as the page shows it.

    Attributes:
        id: its number.
        status: as in `Job`.
        title: what is trained on what.
        details: the grid in words.
        stage: what it does now, or how it ended, in a few words.
        share: how much of the stage is done, 0 to 1; None where that means nothing.
        facts: label and value: epoch, loss, time left, time taken.
        note: what stands out: a cancelling that is under way, a worker that gives no sign of life.
        reason: why it ended early, or None.
        remedy: what to do about it, or None.
        log: the last lines its worker wrote, of a job that ended early.
        can_cancel: it waits or runs.
        can_resume: it ended early.
        kind: "training", or the kind of another job, as in `Job.settings`.
        losses: epoch and mean loss of the pass that trains now.
        last_run: id of the last of its runs where it trained to the end, for a link to what was found, or "".
    """

    id: int
    status: str
    title: str
    details: str
    stage: str
    share: float | None
    facts: tuple[tuple[str, str], ...]
    note: str | None
    reason: str | None
    remedy: str | None
    log: tuple[str, ...]
    can_cancel: bool
    can_resume: bool
    kind: str = "training"
    losses: tuple[tuple[int, float], ...] = ()
    last_run: str = ""

    @property
    def projects(self) -> bool:
        """It makes pictures of runs that are trained."""
        return self.kind == projection.KIND


@dataclass(frozen=True)
class JobsView:
    """The queue.

    Attributes:
        open: the running job first, then those that wait, in their order.
        over: the last jobs that are over, the newest first.
        state: changes when a job begins or ends, and not with its progress.
        words: as `queue_words`.
    """

    open: tuple[JobCard, ...]
    over: tuple[JobCard, ...]
    state: str
    words: str


def keep_queue_going(store: RunStore) -> None:
    """Ends jobs whose process died, and starts a worker where jobs wait for one: any page that is open sees to it."""
    Queue(store).supervise()


def queue_words(store: RunStore) -> str:
    """How many jobs run and wait, as "1 running, 2 queued"; empty where there are none."""
    return _words(Queue(store).list())


def jobs_view(store: RunStore) -> JobsView:
    """The queue with its progress. Keeps the queue going: who looks at it sees to it that somebody works."""
    queue = Queue(store)
    queue.supervise()
    jobs = queue.list()
    first = [j for j in jobs if j.status == ACTIVE] + [j for j in reversed(jobs) if j.status == WAITING]
    over = [j for j in jobs if j.status not in (ACTIVE, WAITING)][:_SHOWN]
    return JobsView(
        tuple(card_of(j, queue) for j in first),
        tuple(card_of(j, queue) for j in over),
        " ".join(f"{j.id}:{j.status}" for j in jobs),
        _words(jobs),
    )


def cancel(job_id: int, store: RunStore) -> None:
    """Ends a job: one that waits at once, one that runs after its epoch, by force after ten seconds."""
    Queue(store).cancel(job_id)


def resume(job_id: int, store: RunStore) -> None:
    """Takes up a job that ended early; what it finished is not trained again.

    Raises:
        StoreError: it did not end early.
    """
    queue = Queue(store)
    queue.resume(job_id)
    queue.supervise()


def forget(job_id: int, store: RunStore) -> None:
    """Takes a job that is over off the list, with its log; its runs stay."""
    Queue(store).remove(job_id)


def _words(jobs: Sequence[Job]) -> str:
    counts = [(sum(j.status == status for j in jobs), status) for status in (ACTIVE, WAITING)]
    return ", ".join(f"{n} {status}" for n, status in counts if n)


def card_of(job: Job, queue: Queue) -> JobCard:
    """A job as a page shows it."""
    at = job.progress
    facts: list[tuple[str, str]] = []
    share = None
    stage = STATUS[job.status]
    if job.status == ACTIVE:
        stage = _STAGES.get(at.get("stage", "starting"), "Working")
        if at.get("stage") == "training":
            facts.append(("Epoch", f"{at['done']:,} of {at['total']:,}"))
            facts.append(("Loss", _loss(at.get("loss"))))
            if " (pass " in at["text"]:
                stage += " pass " + at["text"].partition(" (pass ")[2].partition(")")[0]
                facts.append(("Left in this pass", "-" if at["seconds_left"] is None else duration(at["seconds_left"])))
        elif at.get("stage") == "auditing":
            facts.append(("Run", f"{at['done'] + 1:,} of {at['total']:,}, {at['text'].rpartition(', ')[2]}"))
        elif at.get("stage") == "projecting":
            facts.append(("Step", f"{at['done'] + 1:,} of {at['total']:,}, {at['text'].partition(',')[0]}"))
        elif at.get("stage") == "comparing":
            facts.append(("Step", f"{at['done'] + 1:,} of {at['total']:,}, {at['text']}"))
            facts.append(("Left", "-" if at["seconds_left"] is None else duration(at["seconds_left"])))
        elif at.get("stage") in ("reading", "measuring"):
            facts.append(("Step", f"{at['done'] + 1:,} of {at['total']:,}, {at['text']}"))
        if (left := at.get("job_seconds_left")) is not None:
            facts.append(("Left with audits" if at["stage"] == "training" else "Left", duration(left)))
        if at.get("total", 0) > 0 and at.get("stage") != "starting":
            share = min(1.0, at["done"] / at["total"])
        if machines := dict.fromkeys(_MACHINE.findall(at.get("text", ""))):
            facts.append(("On", ", ".join(machines)))
        facts.append(("Running for", duration(max(0.0, time.time() - (job.started or job.created)))))
        if at.get("memory"):
            facts.append(("GPU memory", f"{at['memory'] / 2**30:.1f} GiB"))
    elif job.started and job.ended:
        facts.append(("Took", duration(max(0.0, job.ended - job.started))))
    bad = job.resumable
    return JobCard(
        job.id,
        job.status,
        _title(job),
        _details(job),
        stage,
        share,
        tuple(facts),
        _note(job),
        job.reason if bad else None,
        job.remedy if bad else None,
        queue.last_lines(job) if job.status in ("failed", "interrupted") else (),
        job.status in (ACTIVE, WAITING),
        bad and job.settings.get("kind") != DAMAGED,
        job.settings.get("kind", "training"),
        tuple((int(epoch), float(loss)) for epoch, loss in at.get("losses") or ()) if job.status == ACTIVE else (),
        job.runs[-1] if job.status == "finished" and job.runs and "kind" not in job.settings else "",
    )


def _loss(value: float | None) -> str:
    return "-" if value is None or value != value else rounded(value)


def _note(job: Job) -> str | None:
    if job.status == ACTIVE and job.cancel is not None:
        return "Stopping after this epoch; after ten seconds it is ended by force."
    if job.status == ACTIVE and job.quiet > 5:
        since = f" for {duration(job.quiet)}" if job.quiet < float("inf") else " since this machine started"
        return f"No sign of life{since}; after 30 s without its process it counts as interrupted."
    return None


def _title(job: Job) -> str:
    data = str(job.settings["data"])
    name = Path(data).name if "/" in data else data
    scenario = job.settings.get("scenario")
    name += f" + scenario {scenario['name']}" if scenario else ""
    if job.settings.get("kind") == projection.KIND:
        return f"{_pictures(job.settings['methods'])} of {name}"
    if job.settings.get("kind") == comparison.KIND:
        return f"Two runs of {name}, compared in pairs"
    if job.settings.get("kind") == DAMAGED:
        return "A damaged record"
    if job.settings.get("kind") == "reading":
        return f"Reading {name}"
    if job.settings.get("kind") == measure.KIND:
        return f"How fast this machine trains on {name}"
    return f"{', '.join(method_class(m).label for m in job.settings['grid']['methods'])} on {name}"


def _pictures(methods: Sequence[str]) -> str:
    return ", ".join(find("explore.projection.methods", m).label for m in methods)


def _details(job: Job) -> str:
    if job.settings.get("kind") == comparison.KIND:
        return " against ".join(reversed(job.settings["path"]))
    if job.settings.get("kind") == projection.KIND:
        runs, size = job.settings["path"], job.settings["size"]
        return f"{len(runs)} run{'s' * (len(runs) != 1)} · {size:,} people · seed {job.settings['seed']}"
    if "grid" not in job.settings:
        return str(job.settings["data"])
    grid = job.settings["grid"]
    lams = ", ".join(f"{x:g}" for x in grid["lams"])
    seeds = grid["seeds"]
    sets = [" + ".join(split_names(part)) for part in str(grid["sensitive"]).split(",") if part.strip()]
    parts = [
        "treating " + ", then ".join(sets) if sets else "",
        ", ".join(grid["backbones"]),
        f"λ {lams}" if lams else "",
        f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        f"{grid['epochs']:,} epochs",
        *(
            [f"settings of run {job.settings['like']}"]
            if "like" in job.settings
            else [f"{k} = {v}" for k, v in grid["options"].items()]
        ),
        f"{len(job.runs)} run{'s' * (len(job.runs) != 1)}" if job.runs else "",
        f"then {_pictures(job.settings['projections'])}" if job.settings.get("projections") else "",
    ]
    return " · ".join(filter(None, parts))


@dataclass(frozen=True)
class HistoryView:
    """The stored runs as a table, a row for each or one for all that differ in their seed alone.

    Attributes:
        table: the rows.
        runs: the runs behind each row by its key, which is the id of the first; in the table's order.
        labels: what each row is called in a few words, by its key.
        total: how many runs there are before the filter.
        archived: ids of all archived runs, shown or not.
        trains: ids of the shown runs that are being trained, which can be neither deleted nor archived.
        statuses: those there are.
        cut_off: ids of the shown runs that failed or were interrupted.
        seeds: the seed of each shown run by id.
    """

    table: pd.DataFrame
    runs: dict[str, tuple[str, ...]]
    labels: dict[str, str]
    total: int
    archived: frozenset[str]
    trains: frozenset[str]
    statuses: tuple[str, ...]
    cut_off: tuple[str, ...]
    seeds: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> int:
        """How many runs the table stands for."""
        return sum(map(len, self.runs.values()))

    def rows_of(self, ids: Sequence[str]) -> list[str]:
        """The keys of the rows that these runs, or keys, are in, in their order; what is not shown is left out."""
        row = {run: key for key, runs in self.runs.items() for run in runs}
        return list(dict.fromkeys(row[i] for i in ids if i in row))

    def behind(self, keys: Sequence[str]) -> list[str]:
        """Ids of the runs behind these rows."""
        return [run for key in keys for run in self.runs.get(key, ())]

    def pairs(self, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Of two rows, the runs to compare, by the words for it: those of each seed that both have.

        Rows without a seed in common give their first runs; other than two rows give nothing.
        """
        if len(keys) != 2:
            return {}
        first, second = ({self.seeds.get(run): run for run in reversed(self.runs[key])} for key in keys)
        both = {f"seed {s}": (first[s], second[s]) for s in sorted(first.keys() & second.keys(), key=str)}
        alone = {"the first of each": (self.runs[keys[0]][0], self.runs[keys[1]][0])}
        return both or alone


def history_view(
    store: RunStore, *, text: str = "", statuses: Sequence[str] = (), archived: bool = False, by_seed: bool = False
) -> HistoryView:
    """The stored runs, the newest first.

    Args:
        store: the run store.
        text: only runs in whose row each of these words stands, upper and lower case alike.
        statuses: only these; all where none is named.
        archived: show archived runs too.
        by_seed: a row for each run; else one for runs that differ in their seed alone.
    """
    stored = store.list(audits=False, archived=True)
    runs = [run for run in stored if archived or run.archived is None]
    cells = {run.id: _row(run) for run in runs}
    words = text.lower().split()
    shown = [
        run
        for run in runs
        if (not statuses or run.status in statuses)
        and all(w in " ".join(map(str, cells[run.id].values())).lower() for w in words)
    ]
    rows = [(run,) for run in shown] if by_seed else _folded(shown)
    return HistoryView(
        pd.DataFrame([_merged([cells[run.id] for run in row]) for row in rows]),
        {row[0].id: tuple(run.id for run in row) for row in rows},
        _labels(rows),
        len(runs),
        frozenset(run.id for run in stored if run.archived is not None),
        frozenset(run.id for run in shown if run.status == "running"),
        tuple(dict.fromkeys(run.status for run in runs)),
        tuple(run.id for run in shown if run.status in ("failed", "interrupted")),
        {run.id: run.config.get("seed") for run in shown},
    )


def _folded(runs: Sequence[StoredRun]) -> list[tuple[StoredRun, ...]]:
    """Runs that differ in their seed alone together, in the order of the newest of each."""
    several = [fold.runs for fold in folds(runs)]
    kept = {run.id for row in several for run in row}
    several += [(run,) for run in runs if run.id not in kept]  # warm starts, for which a fold has the cold one
    place = {run.id: i for i, run in enumerate(runs)}
    return sorted(several, key=lambda row: min(place[run.id] for run in row))


def _row(run: StoredRun) -> dict[str, Any]:
    c = run.config
    return {
        "Run": config_words(c, "method", "file", "sensitive", typed=False, joint=" · ") or run.id,
        "Seeds": config_words(c, "seed"),
        "Status": (run.status if run.audited or run.status != "finished" else "finished, not audited yet")
        + (", archived" if run.archived is not None else ""),
        "Data": run.dataset.get("name", ""),
        "Backbone": c.get("backbone", ""),
        "Epochs": c.get("epochs"),
        "Trained in": "" if run.seconds is None else duration(run.seconds),
        "On": run.device or "",
        "Started": pd.Timestamp.fromtimestamp(int(run.created)),  # local, as on the other pages
        "Id": run.id,
        "Reason": run.reason or "",
    }


def _merged(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The rows of runs that differ in their seed alone as one."""
    if len(rows) == 1:
        return rows[0]
    count = Counter(row["Status"] for row in rows)
    status = next(iter(count)) if len(count) == 1 else "; ".join(f"{n} {words}" for words, n in count.items())
    joined = {name: _first(row[name] for row in rows) for name in ("Trained in", "On", "Id", "Reason")}
    started = max(row["Started"] for row in rows)
    return rows[0] | joined | {"Seeds": f"{len(rows)} seeds", "Status": status, "Started": started}


def _first(cells: Iterable[str]) -> str:
    """The first few different cells, and how many more there are."""
    different = [cell for cell in dict.fromkeys(cells) if cell]
    more = len(different) - _FEW
    return ", ".join(different[:_FEW]) + (f" and {more} more" if more > 0 else "")


def _labels(rows: Sequence[Sequence[StoredRun]]) -> dict[str, str]:
    """What rows are called in a few words: method, lambda, seed and data, and what else tells two of them apart."""
    parts = {row[0].id: config_parts(row[0].config, typed=False) for row in rows}
    names = {}
    for row in rows:
        p, seeds = parts[row[0].id], f"{len(row)} seeds" if len(row) > 1 else parts[row[0].id]["seed"]
        names[row[0].id] = " · ".join(filter(None, (p["method"], p["file"], seeds, row[0].dataset.get("name", ""))))

    def apart(more: Mapping[str, str]) -> None:
        """Adds what differs among those that read alike."""
        alike: dict[str, list[str]] = {}
        for key, name in names.items():
            alike.setdefault(name, []).append(key)
        for name, keys in alike.items():
            if len({more[key] for key in keys}) > 1:
                names.update({key: f"{name} · {more[key]}" for key in keys if more[key]})

    for part in ("sensitive", "backbone", "epochs", "dim", "split"):
        apart({key: p[part] for key, p in parts.items()})
    found = settings_apart({row[0].id: row[0].config for row in rows}, names)
    apart({key: ", ".join(found[key][:2]) for key in names})
    apart({key: key[:6] for key in names})
    return names


def removal(run_ids: Sequence[str], store: RunStore) -> tuple[str, ...]:
    """What deleting these runs would remove, in sentences."""
    doomed_runs, sentences = set(run_ids), []
    size = files = 0
    others: set[str] = set()
    checkpoints = list(checkpoint.checkpoints_in(store.checkpoints))
    for run_id in run_ids:
        run = store.load(run_id)
        for path in run.folder.rglob("*") if run.folder.is_dir() else ():
            if path.is_file():
                files, size = files + 1, size + path.stat().st_size
    held = [(path, record["runs"]) for path, record in checkpoints if doomed_runs.intersection(record["runs"])]
    for path, runs in held:
        size, others = size + path.stat().st_size, others | set(runs) - doomed_runs
    sentences.append(
        f"{len(run_ids)} run{'s' * (len(run_ids) != 1)} with audit, history and settings, {files} files: "
        "embeddings, copies trained without the people tested, and projections"
    )
    if held:
        also = f", which hold {len(others)} other interrupted runs too" if others else ""
        sentences.append(
            f"{len(held)} checkpoint{'s' * (len(held) != 1)}{also}: training cannot go on from there any more"
        )
    if doomed := list(store.scenarios_of(store.last_of(run_ids)).values()):
        sentences.append(
            f"{len(doomed)} scenario{'s' * (len(doomed) != 1)} ({', '.join(doomed)}), as no other run of their "
            "graph is left"
        )
    sentences.append(f"{size / 1e6:.1f} MB in all. The data the runs were trained on stay where they are.")
    return tuple(sentences)


def delete(run_ids: Sequence[str], store: RunStore) -> tuple[str, ...]:
    """Deletes runs with their files and says what was removed."""
    return tuple(line for run_id in run_ids for line in store.delete(run_id))


def reading(spec: str, store: RunStore) -> JobCard | None:
    """The newest job that reads a file, or None."""
    queue = Queue(store)
    name = lasting(spec)
    jobs = [job for job in queue.list() if job.settings.get("kind") == KIND and job.settings["data"] == name]
    if any(job.status in (ACTIVE, WAITING) for job in jobs):
        queue.supervise()
    return card_of(jobs[0], queue) if jobs else None
