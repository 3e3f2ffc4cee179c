"""What stands beside every page: which data, which attribute, and the two runs that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uge_core.runs.names import labels, run_order
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.views.points import Fold, folds
from uge_core.views.rows import audited_attributes


@dataclass(frozen=True)
class Frame:
    """The choices of the frame, and what was chosen.

    Attributes:
        datasets: label by key, the first letters of the data's fingerprint.
        attributes: audited attributes of the chosen data, those that some run treats first.
        runs: label by the id of the run that stands for it: the audited runs of the chosen data, those that differ in
            their seed alone as one.
        seeds: of each of `runs` the ids of its runs by their seed.
        seed: of the run that is shown of B, or of A; None where neither has several.
        data: the chosen data's key, or None without an audited run.
        attribute: the chosen attribute, or None.
        before: the run that is compared with, or None.
        after: the other run; None where there is only one.
        messages: what was asked for and is not there.
    """

    datasets: Mapping[str, str]
    attributes: Sequence[str]
    runs: Mapping[str, str]
    seeds: Mapping[str, Mapping[int, str]]
    seed: int | None
    data: str | None
    attribute: str | None
    before: str | None
    after: str | None
    messages: Sequence[str]


def frame(
    store: RunStore,
    *,
    data: str | None = None,
    attribute: str | None = None,
    before: str | None = None,
    after: str | None = None,
    seed: int | None = None,
) -> Frame:
    """The frame's choices; what is asked for and does not exist falls back to the default, with a message.

    By default: the data of the newest run, the first attribute that a run treats, an untreated run
    as `before` and the last in the order of lists that treats the attribute as `after`.

    Args:
        store: the run store.
        data: key of the data, as in `Frame.datasets`, or their name.
        attribute: name of an audited attribute.
        before: a run's id.
        after: a run's id.
        seed: which run of A and of B is shown where one at a time can be; None takes those that are named.
    """
    runs = [r for r in store.list(audits=False) if r.audited]
    names = {run.dataset["fingerprint"]: run.dataset["name"] for run in reversed(runs)}
    count = Counter(names.values())
    datasets = {f[:8]: f"{name} {f[:8]}" if count[name] > 1 else name for f, name in reversed(names.items())}
    messages: list[str] = []

    def pick(
        what: str, asked: str | None, allowed: Sequence[str] | Mapping[str, str], default: str | None
    ) -> str | None:
        if asked is None or asked in allowed:
            return asked if asked is not None else default
        instead = f"; {what} {_named(default, allowed)} is shown instead" if default else ""
        messages.append(f"There is no {what} {asked[:40]!r}{'' if what == 'data set' else ' in these data'}{instead}.")
        return default

    # A name serves as well as a key, as people write addresses by hand: of several with one name the newest.
    if data not in datasets:
        data = next((f[:8] for f, name in reversed(names.items()) if name == data), data)
    data = pick("data set", data, datasets, next(iter(datasets), None))
    here = sorted((r for r in runs if r.dataset["fingerprint"][:8] == data), key=run_order)
    treated = list(dict.fromkeys(name for run in here for name in run.config["sensitive"]))
    # Rows are read of these few alone, so that the frame stays quick over a thousand runs.
    asked = [r for r in here if r.id in (before, after)]
    # The newest, and the newest of every way of running: one audited for gender alone does not hide the others' region.
    newest = {
        (r.config["method"] == "external", *r.config["sensitive"]): r for r in sorted(here, key=lambda r: r.created)
    }
    audited = [a for run in {r.id: r for r in (*newest.values(), *asked)} for a in audited_attributes(store.load(run))]
    attributes = tuple(
        sorted(dict.fromkeys(audited), key=lambda a: (a not in treated, treated.index(a) if a in treated else 0))
    )
    attribute = pick("attribute", attribute, attributes, next(iter(attributes), None))
    rows = folds(here)
    allowed = {run.id: _row_of(rows, run.id) or labels([run])[run.id] for run in here}
    first, second = _defaults(here, attribute)
    before = pick("run", before, allowed, first)
    if second is not None and _row_of(rows, before) == _row_of(rows, second):
        second = next((f.key for f in rows if before not in f.ids), None)
    after = pick("run", after, allowed, second)
    # A warm start is in no row: it stands for itself where it is asked for.
    shown = {f.key: f.label for f in rows} | {
        i: labels([run])[i] for run in here if (i := run.id) in (before, after) and not _row_of(rows, i)
    }
    seeds = {f.key: {_seed(run): run.id for run in f.runs} for f in rows}
    before, after = (_of_seed(rows, seeds, i, seed) for i in (before, after))
    several = [run for i in (after, before) for f in rows for run in f.runs if run.id == i and len(f.runs) > 1]
    return Frame(
        datasets,
        attributes,
        shown,
        seeds,
        _seed(several[0]) if several else None,
        data,
        attribute,
        before,
        after,
        tuple(messages),
    )


def _row_of(rows: Sequence[Fold], run_id: str | None) -> str | None:
    """The label of the row that a run is in."""
    return next((f.label for f in rows if run_id in f.ids), None)


def _seed(run: StoredRun) -> int:
    return int(run.config.get("seed") or 0)


def _of_seed(
    rows: Sequence[Fold], seeds: Mapping[str, Mapping[int, str]], run_id: str | None, seed: int | None
) -> str | None:
    """The run of the same row with that seed, or the run itself."""
    row = next((f.key for f in rows if run_id in f.ids), None)
    return run_id if row is None or seed is None else seeds[row].get(seed, run_id)


def _named(value: str | None, allowed: Sequence[str] | Mapping[str, str]) -> str:
    return repr(allowed[value]) if isinstance(allowed, Mapping) and value else repr(value)


def _defaults(runs: Sequence[StoredRun], attribute: str | None) -> tuple[str | None, str | None]:
    """An untreated run and one that treats the attribute, alike but for the method where there are such."""
    plain = [r for r in runs if r.config["method"] == "none"] or [r for r in runs if not r.config["sensitive"]]
    treated = [r for r in runs if attribute in r.config["sensitive"]]
    before = next(iter(plain or runs), None)
    others = [r for r in treated if r is not before] or [r for r in runs if r is not before]
    like = ("backbone", "seed", "split_seed", "epochs", "dim")
    alike = [r for r in others if before and all(r.config.get(k) == before.config.get(k) for k in like)]
    after = next(reversed(alike or others), None)
    return before.id if before else None, after.id if after else None


def address_of(store: RunStore, run_id: str) -> dict[str, str]:
    """The query parameters that show a run as run B; empty where it is gone or not audited."""
    run = next((r for r in store.list(audits=False, only=[run_id]) if r.audited and r.archived is None), None)
    return {} if run is None else {"data": run.dataset["fingerprint"][:8], "after": run.id}
