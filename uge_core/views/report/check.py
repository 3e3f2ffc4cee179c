"""Whether a report's file still says what was measured, in whichever of the formats it is.

A report is made anew from the stored audits by its recipe, and every text, figure and chart's datum is compared; the
audits themselves are measured anew by `runs.verify`. A file also holds a SHA-256 of what it says, so that a change is
noticed where the runs are gone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from uge_core.audit import record
from uge_core.errors import ConfigError, GraphError, RecordError, RunNotFound, StoreError
from uge_core.graph.graph import AttributedGraph
from uge_core.runs.notes import notes_of
from uge_core.runs.store import RunStore
from uge_core.runs.stored_run import StoredRun
from uge_core.runs.verify import DIFFERS, EQUAL, NOT_RECOMPUTED, Finding, verify
from uge_core.views import report as reports
from uge_core.views.report import pieces, printed, recipe, table
from uge_core.views.report.origin import public_name
from uge_core.views.report.recipe import Recipe
from uge_core.views.report.scenarios import scenario_digest, scenario_records

Load = Callable[[StoredRun], AttributedGraph]
_MOST_BYTES = 2**28
_ALL = "the whole report"
_GONE = (StoreError, RunNotFound, GraphError, ConfigError)


def check(path: str | Path, store: RunStore, load: Load, *, measure: bool = True) -> Iterator[Finding]:
    """Checks a report's file, HTML, PDF, CSV or JSON, whatever it is called.

    Args:
        path: the file.
        store: where its runs may be.
        load: a run's graph; may raise GraphError or StoreError where it is not there or another.
        measure: measure the embeddings again; else the store's audits are believed.

    Yields:
        The findings, those of the file first, then those of each run, then the comparison with the report made anew.

    Raises:
        RecordError: it is no report that can be read.
        ConfigError: what reads a PDF is not installed.
    """
    content = _bytes(Path(path))
    start = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"%PDF-"):
        yield from _pdf(path, content, store, load, measure)
    elif start[:9].lower() == b"<!doctype" or start[:5].lower() == b"<html":
        yield from _html(path, _text(path, content), store, load, measure)
    elif start.replace(b'"', b"").startswith(b"sha256,run_id,"):
        yield from _csv(path, _text(path, content), store, load, measure)
    else:
        yield from _json(path, store, load, measure)


def held_records(path: str | Path) -> list[dict[str, Any]]:
    """The audit records that a report's JSON or HTML file holds.

    Raises:
        RecordError: it is no such file, holds no record, or one that has not the shape of one.
    """
    content = _bytes(Path(path))
    start = content[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith((b"%PDF-",)) or start.replace(b'"', b"").startswith(b"sha256,run_id,"):
        raise RecordError(f"{path}: a PDF or CSV report does not hold its records; name the JSON or the HTML file")
    if start[:9].lower() == b"<!doctype" or start[:5].lower() == b"<html":
        held = next((p.content for p in pieces.pieces(_text(path, content)) if p.kind == pieces.RECORDS), None)
        records = [r for r in held if isinstance(r, dict)] if isinstance(held, list) else []
        if not records:
            raise RecordError(f"{path}: is a page that holds no audit; name a file that uge report wrote")
    else:
        records = record.read(path)
    for one in records:
        for fault in record.faults(one):
            raise RecordError(f"{path}: holds a record that has not the shape of one: {fault}")
    return records


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise RecordError(f"{path}: is larger than {_MOST_BYTES:,} bytes, which no report is")
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror or error}); name a report's file") from None


def _text(path: str | Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RecordError(f"{path}: is not UTF-8 text; name a file that uge report wrote") from None


def _json(path: str | Path, store: RunStore, load: Load, measure: bool) -> Iterator[Finding]:
    records = record.read(path)
    content = json.loads(Path(path).read_bytes().decode("utf-8-sig"))
    scenarios = [r for r in content if r.get("schema") == record.SCENARIO_NAME] if isinstance(content, list) else []
    alone = len(records) == 1 and not scenarios
    for one in records:
        about = "" if alone else f"run {one.get('run_id')}"
        yield from (replace(f, about=about) for f in verify(one, store, load, measure=measure))
    for edited in scenarios:
        about = f"scenario {edited.get('name')}"
        found = _scenario(edited, store, [str(r.get("run_id")) for r in records])
        yield from (replace(f, about=about) for f in found)


def _scenario(edited: Mapping[str, Any], store: RunStore, runs: list[str]) -> Iterator[Finding]:
    """What is found of a scenario's record; its answers are compared with those kept, and not measured anew."""
    said, due = edited.get("record_sha256"), scenario_digest(edited)
    if said is None:
        yield Finding(
            "sha256", NOT_RECOMPUTED, "an earlier version wrote the scenario without a SHA-256 of its answers"
        )
    elif said == due:
        yield Finding("sha256", EQUAL, f"{due} is that of the content")
    else:
        text = f"the report says {str(said)[:80]}, its content has {due}: it was changed after it was written"
        yield Finding("sha256", DIFFERS, text)
    try:
        (kept,) = scenario_records(store, [str(edited.get("sha256"))[:12]], runs)
    except _GONE as error:
        yield Finding("scenario", NOT_RECOMPUTED, f"not compared: {error}")
        return
    # What an earlier version did not write is no difference of what it did.
    later = {"record_sha256"} | ({"warning"} if said is None else set())
    differing = pieces.difference(*({k: v for k, v in r.items() if k not in later} for r in (edited, kept)))
    if differing is None:
        yield Finding("scenario", EQUAL, "as the store keeps it; its answers were not measured anew")
    elif said == due:
        text = f"{differing}, as the store keeps it: asked again or renamed since, or changed and sealed anew"
        yield Finding("scenario", NOT_RECOMPUTED, text)
    else:
        yield Finding("scenario", DIFFERS, f"{differing}, as the store keeps it")


def _html(path: str | Path, text: str, store: RunStore, load: Load, measure: bool) -> Iterator[Finding]:
    page = pieces.pieces(text)
    held = next((p.content for p in page if p.kind == pieces.RECORDS), None)
    line = next((p.content for p in page if p.kind == pieces.RECIPE), None)
    records = [r for r in held if isinstance(r, dict)] if isinstance(held, list) else []
    if line is None and not records:
        raise RecordError(f"{path}: is a page that holds no audit; name a file that uge report wrote")
    card = None
    if line is None:
        yield _no_recipe()
    else:
        card, finding = _opened(json.dumps(line), reports.content_of_page(page))
        yield finding
    for one in records:
        found = verify(one, store, load, measure=measure)
        yield from (replace(f, about=f"run {one.get('run_id')}") for f in found)
    if card:
        yield from _figures(
            card, store, "html", lambda made: pieces.first_difference(page, pieces.pieces(made.decode()))
        )


def _csv(path: str | Path, text: str, store: RunStore, load: Load, measure: bool) -> Iterator[Finding]:
    lines, line = table.lines(text)
    if line is None:
        raise RecordError(f"{path}: {_NO_RECIPE}; its runs' JSON can be checked")
    card, finding = _opened(line, reports.content_of_table(lines))
    yield finding
    if card:
        yield from _measured(card, store, load, measure)
        yield from _figures(
            card, store, "csv", lambda made: table.first_difference(lines, table.lines(made.decode("utf-8-sig"))[0])
        )


def _pdf(path: str | Path, content: bytes, store: RunStore, load: Load, measure: bool) -> Iterator[Finding]:
    found = printed.recipe_of(content)
    if found is None:
        raise RecordError(f"{path}: {_NO_RECIPE}; its runs' JSON can be checked")
    line, before = found
    card, finding = _opened(line, recipe.sha256(before), drawn=True)
    yield finding
    if card is None:
        return
    try:
        text = printed.pages(content)
    except RecordError as error:
        yield Finding("figures", DIFFERS, f"{error}; it was changed after it was written", _ALL)
        return
    yield from _measured(card, store, load, measure)
    yield from _figures(card, store, "html", lambda made: printed.first_difference(text, pieces.pieces(made.decode())))


_NO_RECIPE = "does not say how it was made, so an earlier version made it, or that was taken out of it"


def _no_recipe() -> Finding:
    return Finding("content", NOT_RECOMPUTED, f"the report {_NO_RECIPE}; its text was not compared")


def _opened(line: str, content: str, *, drawn: bool = False) -> tuple[Recipe | None, Finding]:
    """The recipe, where it can be read, and whether the file has the SHA-256 that stands in it."""
    try:
        card, said, sealed = recipe.read(line)
    except RecordError as error:
        return None, Finding("content", DIFFERS, str(error))
    if not sealed:
        return card, Finding("content", DIFFERS, "what says how the report was made was changed after it was written")
    if said == content:
        return card, Finding("content", EQUAL, f"{content} is that of the {'file' if drawn else 'content'}")
    if drawn:
        # Another program may have saved it without a change that a reader sees.
        text = "the file is not the one that was written; its text is compared, what is drawn in charts cannot be"
        return card, Finding("content", NOT_RECOMPUTED, text)
    text = f"the report says {said[:80]}, its content has {content}: it was changed after it was written"
    return card, Finding("content", DIFFERS, text)


def _measured(card: Recipe, store: RunStore, load: Load, measure: bool) -> Iterator[Finding]:
    """The stored records that a report without its own was made of, each checked."""
    for run_id, sha in card.runs.items():
        try:
            stored = store.load(run_id).audit
        except _GONE as error:
            yield Finding("record", NOT_RECOMPUTED, f"not compared: {error}", f"run {run_id}")
            continue
        if stored is not None and stored.get("sha256") == sha:
            found: Iterable[Finding] = verify(stored, store, load, measure=measure)
            yield from (replace(f, about=f"run {run_id}") for f in found)


def _figures(card: Recipe, store: RunStore, name: str, compare: Callable[[bytes], str | None]) -> Iterator[Finding]:
    """The report made anew from the store and compared."""
    yield from _command(card, store)
    if name == "html":  # a table prints no note
        yield from _notes(card, store)
    try:
        now = {i: str((store.load(i).audit or {}).get("sha256")) for i in card.runs}
        if other := recipe.differing(card.runs, now):
            raise StoreError(
                f"the report is of record {card.runs[other][:80]} of run {other}, the store keeps "
                f"{now[other]}: it was audited again since, or the report says another"
            )
        edited = {i: r["record_sha256"] for i in card.scenarios for r in scenario_records(store, [i], list(card.runs))}
        if other := recipe.differing(card.scenarios, edited):
            raise StoreError(
                f"what the store keeps of scenario {other} is not what the report is of: asked again since"
            )
        known = {f.name for f in fields(reports.Sheet)}
        if not card.sheet.keys() <= known:
            raise ConfigError(f"the report was typed in fields that this version has not; allowed: {', '.join(known)}")
        chosen = dict(card.chosen)
        policy = (chosen.pop("policy"), chosen.pop("rules", "")) if "policy" in chosen else None
        made = reports.contents(
            list(card.runs),
            sheet=reports.Sheet(**card.sheet),
            scenarios=list(card.scenarios),
            store=store,
            made=card.made,
            before=chosen.get("before", ""),
            after=chosen.get("after", ""),
            attribute=chosen.get("attribute", ""),
            data=chosen.get("data", ""),
            policy=policy,
            sections=[k for k in chosen["sections"].split(",") if k != "runs"] if "sections" in chosen else None,
            notes=card.notes,
        )
        differing = compare(made[name]())
    except _GONE as error:
        yield Finding("figures", NOT_RECOMPUTED, f"not compared with the report made anew: {error}", _ALL)
        return
    if differing is None:
        yield Finding("figures", EQUAL, "as in the report made anew from the stored audits", _ALL)
    elif card.maker != recipe.maker():
        text = f"{differing}; another version of this package made the report, which may say things otherwise"
        yield Finding("figures", NOT_RECOMPUTED, text, _ALL)
    else:
        yield Finding("figures", DIFFERS, differing, _ALL)


def _command(card: Recipe, store: RunStore) -> Iterator[Finding]:
    """How the data are named in the command that a reader may run: as a run says, or by who changed the report."""
    said, allowed = card.chosen.get("data", ""), {}
    for run_id, sha in card.runs.items():
        try:
            run = store.load(run_id)
            if (run.audit or {}).get("sha256") == sha:
                allowed[public_name(run)] = run_id
        except _GONE:
            continue
    if allowed and said not in allowed:
        names = " or ".join(repr(name) if name else "nothing" for name in allowed)
        text = f"uge rerun's --data is {said[:200]!r} in the report, its runs say {names}; do not run that command"
        yield Finding("command", DIFFERS, text, _ALL)


def _notes(card: Recipe, store: RunStore) -> Iterator[Finding]:
    """Notes that are not what the store holds: a report prints those of its day, and who changes one can seal it anew."""
    try:
        now = notes_of(store, card.runs)
        there = [run_id for run_id in card.runs if store.find(run_id)]
    except _GONE as error:
        yield Finding("note", NOT_RECOMPUTED, f"not compared: {error}", _ALL)
        return
    for run_id in there:
        said, held = card.notes.get(run_id), now.get(run_id)
        if held is not None:
            held = held.encode("utf-8", "backslashreplace").decode()  # as reports hold it
        if said != held:
            what = (
                f"the report prints a note on run {run_id}, the store holds none now"
                if held is None
                else f"the report prints no note on run {run_id}, the store holds one now"
                if said is None
                else f"the note of run {run_id} is not what the store holds now"
            )
            text = f"{what}: it may have been changed since, or in the report"
            yield Finding("note", NOT_RECOMPUTED, text, f"run {run_id}")
