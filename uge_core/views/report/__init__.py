"""Reports of stored audits: one offline HTML file, PDF, JSON and CSV, all made from the same records.

Every format prints the SHA-256 of each record and carries what it is made of (`recipe`), so that `check` makes it anew
and compares. The JSON file is the records themselves; the HTML file holds them too. No format holds a node but those a
what-if scenario names that was asked for: aggregates only. Text is escaped in HTML, and in CSV a cell that would start a
formula is quoted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from uge_core.errors import ConfigError
from uge_core.files import write_atomically
from uge_core.registry import unknown_name
from uge_core.runs.notes import notes_of
from uge_core.views.report import pieces, printed, recipe, table
from uge_core.views.report.card import model_card
from uge_core.views.report.document import document
from uge_core.views.report.origin import origin, public_name
from uge_core.views.report.pdf import browser, print_pdf
from uge_core.views.report.recipe import Recipe
from uge_core.views.report.scenarios import naming, scenario_ids, scenario_lines, scenario_records
from uge_core.views.report.summary import SECTIONS, all_attributes, compared, report_rows

if TYPE_CHECKING:
    from uge_core.runs.store import RunStore
    from uge_core.runs.stored_run import StoredRun

FORMATS = ("html", "pdf", "json", "csv")

__all__ = ["FORMATS", "SECTIONS", "Sheet", "browser", "model_card", "report"]


@dataclass(frozen=True)
class Sheet:
    """What a report says beside its numbers; what is empty is a blank line to write on.

    Attributes:
        title: its heading.
        author: who made the audit, and signs it.
        purpose: what the embedding is for, what the audit covers and what it does not.
        role: the author's.
        threshold_by: who set the threshold that the verdicts go by.
        threshold_when: "before" or "after" seeing results, or "".
        remarks: what else is to be known.
        source: where the data are from; "" takes what their dataset.yaml says.
        licence: theirs, likewise.
        threshold_on: the date on which it was set, or what else says when.
    """

    title: str = "Audit of graph embeddings"
    author: str = ""
    purpose: str = ""
    role: str = ""
    threshold_by: str = ""
    threshold_when: str = ""
    remarks: str = ""
    source: str = ""
    licence: str = ""
    threshold_on: str = ""


def report(
    runs: Sequence[StoredRun | str],
    out: str | Path,
    *,
    formats: Sequence[str] | None = None,
    sheet: Sheet | None = None,
    scenarios: Sequence[str] = (),
    sensitive_output: bool = False,
    store: RunStore | None = None,
    before: str = "",
    after: str = "",
    attribute: str = "",
    policy: str | Path | None = None,
    sections: Sequence[str] | None = None,
) -> list[Path]:
    """Writes the report of some audited runs.

    Args:
        runs: stored runs or their ids, each audited.
        out: a file whose ending says the format (``out.html``), or a folder for ``report.html`` and so on.
        formats: some of html, pdf, json, csv; None: what the file's ending says, for a folder html.
        sheet: title, author, purpose and what else is typed for a sign-off.
        scenarios: stored what-if scenarios, by id or name.
        sensitive_output: write scenarios too whose edits name people.
        store: where the runs lie; None means ``$UGE_STORE``, else ``./uge-store``.
        before: one of the runs, whose embedding is compared with; "" takes the untreated one.
        after: one of the runs, whose embedding the report is about; "" takes the last treated one.
        attribute: the attribute that is told first; "" takes the first that was treated.
        policy: a file of rules, by which each record is judged.
        sections: some of `SECTIONS`, which the appendix holds; None: all.

    Returns:
        The files written.

    Raises:
        ConfigError: no run, a run without an audit, an unknown format or scenario, one that names people without
            `sensitive_output`, or a PDF where no browser is found.
        RunNotFound: there is no such run.
    """
    from uge_core.runs.store import RunStore

    store = store or RunStore()
    out = Path(out)
    ending = out.suffix.lower().removeprefix(".")
    single = ending in FORMATS and not out.is_dir()
    chosen = list(dict.fromkeys(formats or ([ending] if single else ["html"])))
    for name in chosen:
        if name not in FORMATS:
            raise ConfigError(unknown_name("format", name, FORMATS))
    if single and chosen != [ending]:
        raise ConfigError(f"{out} ends in .{ending}, asked for: {', '.join(chosen)}; name a folder for several formats")
    if "pdf" in chosen and browser() is None:
        raise ConfigError(
            "a PDF is printed by Chromium or Chrome, and none was found; install one, name it with BROWSER_PATH, "
            "or take html, which prints well"
        )
    ids = scenario_ids(store, scenarios)
    if (named := naming(store, ids)) and not sensitive_output:
        raise ConfigError(
            f"scenario {named[0]!r} is sensitive personal data: its edits name people and what becomes of their values; add "
            "--sensitive-output (sensitive_output=True) where you may have that in a file, or leave it out"
        )
    rules = None if policy is None else read_policy_text(policy)
    made = contents(
        runs,
        sheet=sheet,
        scenarios=ids,
        store=store,
        policy=rules,
        before=before,
        after=after,
        attribute=attribute,
        sections=sections,
    )
    paths = []
    for name in chosen:
        path = out if single else out / f"report.{name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, partial(_put, made[name]()))
        paths.append(path)
    return paths


def contents(
    runs: Sequence[StoredRun | str],
    *,
    sheet: Sheet | None = None,
    scenarios: Sequence[str] = (),
    store: RunStore,
    made: str | None = None,
    before: str = "",
    after: str = "",
    attribute: str = "",
    policy: tuple[str, str] | None = None,
    data: str | None = None,
    sections: Sequence[str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Mapping[str, Callable[[], bytes]]:
    """By format, what makes the file's bytes; arguments and errors as for `report`.

    `card` is there too: a model card of the embedding that the report is about, as Markdown.

    `scenarios` are ids of what-if scenarios, which every format holds with what the What-if page found for these runs.
    `made` is when, as it is told; None: now. `policy` is a policy's name and its text. `data` is how the data are named
    in commands, None: what the runs say where everybody has them. `sections` are those of the appendix; None: all. `notes` are those
    pinned to runs, None: as they are now.
    """
    loaded = [store.load(r if isinstance(r, str) else r.id) for r in runs]
    if not loaded:
        raise ConfigError("a report needs at least one run; uge runs list shows them")
    for run in loaded:
        if run.audit is None or "sha256" not in run.audit:
            raise ConfigError(f"run {run.id} has no sealed audit; run uge audit {run.id} first")
    loaded = list({run.id: run for run in loaded}.values())
    for name in filter(None, (before, after)):
        if name not in {run.id for run in loaded}:
            raise ConfigError(f"run {name[:40]!r} is not in the report; its runs: {', '.join(r.id for r in loaded)}")
    for name in sections or ():
        if name not in SECTIONS:
            raise ConfigError(unknown_name("section", name, tuple(SECTIONS)))
    stored = [run.audit for run in loaded if run.audit is not None]
    records = stored if policy is None else _judged(stored, *policy)
    edited = scenario_records(store, scenarios, [run.id for run in loaded])
    rows = report_rows(loaded)
    now = compared(rows, before, after)[1]
    names = all_attributes([now])
    if attribute and attribute not in names:
        raise ConfigError(
            f"run {now.key} was not audited for {attribute[:40]!r}; allowed: {', '.join(names) or 'nothing'}"
        )
    # What a command line gives may be no UTF-8.
    typed = {k: v.encode("utf-8", "backslashreplace").decode() for k, v in asdict(sheet or Sheet()).items()}
    if typed["threshold_when"] not in ("", "before", "after"):
        raise ConfigError(
            f"threshold_when = {typed['threshold_when'][:40]!r} is not allowed; allowed: before, after, or nothing"
        )
    if made is None:  # what is made anew takes what it said then
        typed |= {k: v for k, v in origin(now.runs[0], store).items() if not typed[k]}
    sheet = Sheet(**typed)
    chosen = {"before": before, "after": after, "attribute": attribute}
    chosen["data"] = public_name(now.runs[0]) if data is None else data
    # The runs and their hashes stand there anyway, so "runs" is that no other part does.
    if sections is not None and set(sections) != set(SECTIONS):
        chosen["sections"] = ",".join(k for k in SECTIONS if k in sections) or "runs"
    pinned = notes_of(store, [run.id for run in loaded]) if notes is None else notes
    pinned = {i: text.encode("utf-8", "backslashreplace").decode() for i, text in pinned.items()}
    told = chosen if policy is None else chosen | {"policy": policy[0], "rules": policy[1]}
    card = Recipe(
        made=made or time.strftime("%Y-%m-%d %H:%M %Z"),
        sheet=typed,
        runs={run.id: record["sha256"] for run, record in zip(loaded, stored, strict=True)},
        scenarios={i: record["record_sha256"] for i, record in zip(scenarios, edited, strict=True)},
        maker=recipe.maker(),
        chosen={k: v.encode("utf-8", "backslashreplace").decode() for k, v in told.items() if v},
        notes=pinned,
    )

    def page() -> str:
        html = document(loaded, records, sheet, store, card.made, scenarios, chosen, pinned)
        line = card.sealed(content_of_page(pieces.pieces(html)))
        start, found, end = html.rpartition(_PLACE)
        return f"{start}{found[: -len(_END)]}{line}{_END}{end}"

    def printed_page() -> bytes:
        pdf = print_pdf(page())
        return printed.with_recipe(pdf, card.sealed(recipe.sha256(pdf)))

    def lines() -> str:
        text = table.rows_csv(records, list(scenario_lines(edited))).encode("utf-8", "backslashreplace").decode()
        return table.with_recipe(text, card.sealed(content_of_table(table.lines(text)[0])))

    return {
        "html": lambda: page().encode("utf-8"),
        "pdf": printed_page,
        "json": lambda: json.dumps(_one([*records, *edited]), indent=1, ensure_ascii=False).encode(
            "utf-8", "backslashreplace"
        ),
        "csv": lambda: lines().encode("utf-8-sig"),
        "card": lambda: model_card(
            loaded, store, after or now.key, before=before, sheet=sheet, data=chosen["data"]
        ).encode("utf-8", "backslashreplace"),
    }


def read_policy_text(path: str | Path) -> tuple[str, str]:
    """A policy file's name and text, which was checked.

    Raises:
        ConfigError: it is none.
    """
    from uge_core.audit.policy import read

    read(path)
    return Path(path).name, Path(path).read_bytes().decode("utf-8-sig")


def _judged(records: Sequence[dict[str, Any]], name: str, rules: str) -> list[dict[str, Any]]:
    """The records with a policy's verdict, sealed anew."""
    from uge_core.audit.policy import parse
    from uge_core.audit.record import seal

    made = parse(name, rules.encode())
    return [seal(record | {"policy": made.check(record["rows"]).to_json()}) for record in records]


_END = "</script>"
_PLACE = f'<script type="application/json" id="{pieces.RECIPE}">{_END}'


def content_of_page(page: Sequence[pieces.Piece]) -> str:
    """The SHA-256 of what a page says, but for its recipe."""
    return recipe.sha256([[p.kind, p.content] for p in page if p.kind != pieces.RECIPE])


def content_of_table(lines: Sequence[Sequence[str]]) -> str:
    """The SHA-256 of a table's cells."""
    return recipe.sha256(lines)


def _put(content: bytes, file: IO[bytes]) -> None:
    file.write(content)


def _one(records: list[dict[str, Any]]) -> Any:
    return records[0] if len(records) == 1 else records
