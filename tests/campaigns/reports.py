"""Single characters changed in a made report, in each format, as it lies there and sealed anew by a forger.

Each change has to be found by `uge verify`. None that a reader sees are: white space for white space, and in JSON and
markup what reads back as the same value; of these the report must be called equal. In a PDF, letters are changed where they
are drawn, and bytes where they lie; bytes that no text comes from are found as another file than was written.
"""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.audit import policy
from uge_core.audit.record import canonical, seal
from uge_core.errors import RecordError
from uge_core.explore.whatif.edits import Threshold
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.runs.sample_audit import first_start
from uge_core.runs.verify import EQUAL, Finding, exit_code
from uge_core.views import report as reports
from uge_core.views.report import pieces, printed, recipe, table
from uge_core.views.report.check import check
from uge_core.views.report.scenarios import scenario_digest

LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
TRIALS = {"html": 20, "csv": 60, "json": 60, "pdf": 12}


@dataclass
class Bench:
    """A store with two small audits and a scenario, and the reports of them."""

    folder: Path
    store: uge.RunStore
    scenario: str
    runs: list[str]

    @classmethod
    def set_up(cls, folder: Path, formats: tuple[str, ...] = ("html", "csv", "json")) -> Bench:
        store = uge.RunStore(folder / "store")
        first_start(store)
        ids = [next(r.id for r in store.list() if r.config["method"] == name) for name in ("none", "uge-c")]
        for run_id in ids:
            record = store.load(run_id).audit or {}
            rows = record["rows"]
            kept = [r for r in rows if r["metric"] in ("auc", "micro_f1") and r["attacker"] in ("worst", "linear")][:8]
            for metric in ("ndcg_at_10", "ndcg_at_10_matched", "dp", "eo", "usable"):
                kept += [r for r in rows if r["metric"] == metric][:2]
            (folder / "policy.yaml").write_text(
                "- {metric: auc, attribute: region, direction: at_most, number: 0.9, on: value}\n"
            )
            verdict = policy.read(folder / "policy.yaml").check(kept)
            store.save_audit(run_id, seal(record | {"rows": kept, "policy": verdict.to_json()}))
        (row, *_) = [r for r in kept if r["metric"] == "auc"]
        scenario = Scenario(store.load(ids[0]).dataset["fingerprint"], (Threshold(0.5),), "half of them")
        kept_as = Scenarios(store).save(scenario)
        pair = {
            "tier": "re-judge",
            "thresholds": None,
            "before": {**row, "value": 0.625, "ci_low": 0.6, "ci_high": 0.65},
            "after": {**row, "value": 0.875, "ci_low": 0.86, "ci_high": 0.89},
        }
        weights = {"sensitive": [], "before": None, "after": None, "note": None, "cells": [], "more": 0}
        answer = {"tier": "re-judge", "why_not": None, "attributes": [row["attribute"]], "rows": [pair], "moved": []}
        Scenarios(store).keep(kept_as, ids[0], answer | {"weights": weights})
        bench = cls(folder, store, kept_as, ids)
        sheet = ui.Sheet("Audit of a town", "A. Uditor", "Whether names of regions can be read.")
        uge.report(ids, folder / "made", formats=formats, sheet=sheet, scenarios=[kept_as], store=store)
        return bench

    def made(self, name: str) -> bytes:
        return (self.folder / "made" / f"report.{name}").read_bytes()

    def found(self, content: bytes) -> list[Finding]:
        """What `uge verify --quick` finds in a file of this content."""
        path = self.folder / "changed"
        path.write_bytes(content)
        return list(check(path, self.store, lambda run: uge.load(run.dataset["source"]["spec"]), measure=False))

    def fault(self, content: bytes, *, seen: bool = True, figures: bool = False) -> str | None:
        """What is wrong with what is found: a change that is seen must be, by its figures where that is asked."""
        try:
            findings = self.found(content)
        except RecordError:
            return None if seen else "it was refused"
        code = exit_code(findings)
        if seen and figures:
            named = [f for f in findings if f.code != EQUAL and f.what not in ("content", "sha256")]
            return None if code != EQUAL and named else "it was not found but by its SHA-256"
        if (code != EQUAL) == seen:
            return None
        return "it was not found" if seen else "; ".join(f.text for f in findings if f.code != EQUAL)


def page_sealed_anew(html: str) -> str:
    """The page with the SHA-256 of what it says now."""
    start, found, end = html.rpartition(f'id="{pieces.RECIPE}">')
    line, close, rest = end.partition("</script>")
    card, _, _ = recipe.read(line)
    return start + found + card.sealed(reports.content_of_page(pieces.pieces(html))) + close + rest


def table_sealed_anew(text: str) -> str:
    """The table with the SHA-256 of what it says now."""
    lines, line = table.lines(text)
    card, _, _ = recipe.read(line or "")
    body = text.rstrip("\r\n").rpartition("\r\n")[0] + "\r\n"
    return table.with_recipe(body, card.sealed(reports.content_of_table(lines)))


def json_sealed_anew(content: list[dict[str, object]]) -> str:
    """The records, each with the SHA-256 of what it says now."""
    return json.dumps([r | {"record_sha256": scenario_digest(r)} if "record_sha256" in r else seal(r) for r in content])


def pdf_sealed_anew(pdf: bytes, card: recipe.Recipe) -> bytes:
    """The PDF, whoever wrote it, with a recipe at its end."""
    return printed.with_recipe(pdf, card.sealed(recipe.sha256(pdf)))


def changed(rng: random.Random, text: str, places: list[int]) -> tuple[str, str]:
    """The text with one character changed, and which."""
    at = rng.choice(places)
    new = rng.choice([c for c in LETTERS if c != text[at]])
    return text[:at] + new + text[at + 1 :], f"{text[max(0, at - 20) : at]!r} {text[at]!r} -> {new!r} at {at}"


def run(seed: int, quick: bool) -> Iterator[tuple[str, str | None]]:
    """The trials; without a browser those of the PDF are left out."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        pdf = not quick and ui.browser() is not None
        bench = Bench.set_up(Path(folder), ("html", "csv", "json", *(["pdf"] if pdf else [])))
        for name in ("html", "csv", "json", *(["pdf"] if pdf else [])):
            yield f"{name}, as it was made", bench.fault(bench.made(name), seen=False)
        for name, trials in (("html", _html), ("csv", _csv), ("json", _json), *([("pdf", _pdf)] if pdf else [])):
            yield from trials(bench, rng, 3 if quick else TRIALS[name])
        if pdf:
            yield from _gone(bench)
        shutil.rmtree(bench.store.root)
        for name in ("html", "csv"):
            text, words = changed(rng, bench.made(name).decode("utf-8-sig"), [5_000])
            yield f"{name} without its runs, {words}", bench.fault(text.encode())


def _html(bench: Bench, rng: random.Random, number: int) -> Iterator[tuple[str, str | None]]:
    html = bench.made("html").decode()
    # The style and the records are one place in six each, whatever their length; drawings are among the rest.
    style, body, held = html.index("<style>"), html.index("<body>"), html.index('<script type="application/json"')
    parts = [range(style, body), range(held, len(html)), *[range(body, held)] * 4]
    same = pieces.pieces(html)
    for k in range(number):
        text, words = changed(rng, html, list(parts[k % 6]))
        seen = _seen(pieces.pieces, text, same)
        yield from _told(bench, "html", text, words, seen, page_sealed_anew if k % 3 == 0 else None)


def _seen(read: Callable[[str], Any], text: str, same: Any) -> bool:
    """Whether a reader sees something else than before."""
    try:
        return bool(read(text) != same)
    except RecordError:
        return True


def _told(
    bench: Bench, kind: str, text: str, words: str, seen: bool, sealed_anew: Callable[[str], str] | None
) -> Iterator[tuple[str, str | None]]:
    """A changed report as it is, and with its own SHA-256 made anew."""
    yield f"{kind}, {words}", bench.fault(text.encode(), seen=seen)
    if seen and sealed_anew is not None:
        try:
            forged = sealed_anew(text)
        except (RecordError, ValueError):
            return  # what says how it was made is what was changed
        yield f"{kind} sealed anew, {words}", bench.fault(forged.encode(), figures=True)


def _csv(bench: Bench, rng: random.Random, number: int) -> Iterator[tuple[str, str | None]]:
    text = bench.made("csv").decode("utf-8-sig")
    same = table.lines(text)
    for k in range(number):
        other, words = changed(rng, text, list(range(len(text))))
        seen = _seen(table.lines, other, same)
        yield from _told(bench, "csv", other, words, seen, table_sealed_anew if k % 2 == 0 else None)


def _json(bench: Bench, rng: random.Random, number: int) -> Iterator[tuple[str, str | None]]:
    text = bench.made("json").decode()
    same = canonical(json.loads(text))
    for k in range(number):
        other, words = changed(rng, text, [i for i, c in enumerate(text) if not c.isspace()])
        try:
            content = json.loads(other)
            seen = canonical(content) != same
        except (ValueError, RecordError):
            content, seen = None, True
        yield f"json, {words}", bench.fault(other.encode(), seen=seen)
        if seen and content and k % 2 == 0:
            try:
                forged = json_sealed_anew(content)
            except (RecordError, TypeError, AttributeError):
                continue
            # A SHA-256 that was changed is mended by sealing anew.
            if canonical(json.loads(forged)) != same:
                yield f"json sealed anew, {words}", bench.fault(forged.encode(), figures=True)


def _pdf(bench: Bench, rng: random.Random, number: int) -> Iterator[tuple[str, str | None]]:
    pdf = bench.made("pdf")
    line, _ = printed.recipe_of(pdf) or ("", b"")
    card, _, _ = recipe.read(line)
    same = printed.pages(pdf)
    for k in range(number):
        if k % 4 == 3:
            at = rng.randrange(len(pdf))
            other = pdf[:at] + bytes([pdf[at] ^ (1 << rng.randrange(8))]) + pdf[at + 1 :]
            yield f"pdf, a bit of byte {at}", bench.fault(other)
            continue
        drawn, words = _letter_drawn_otherwise(pdf, rng)
        other = pdf_sealed_anew(drawn, card)
        seen = [[printed.letters(x) for x in one] for one in printed.pages(other)] != [
            [printed.letters(x) for x in one] for one in same
        ]
        yield f"pdf sealed anew, {words}", bench.fault(other, seen=seen, figures=seen)


def _letter_drawn_otherwise(pdf: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The PDF with one letter drawn as another, written by pypdf."""
    from pypdf import PdfWriter
    from pypdf.generic import NameObject, StreamObject

    writer = PdfWriter(clone_from=io.BytesIO(pdf))
    number = rng.randrange(len(writer.pages))
    page = writer.pages[number]
    content = page.get_contents()
    data = content.get_data() if content is not None else b""
    letters = list(re.finditer(rb"<([0-9A-F]{4})+> Tj", data))
    one = rng.choice(letters)
    known = sorted({m[0][1:5] for m in letters} - {one[0][1:5]})
    new = rng.choice(known)
    stream = StreamObject()
    stream.set_data(data[: one.start() + 1] + new + data[one.start() + 5 :])
    page[NameObject("/Contents")] = writer._add_object(stream)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue(), f"page {number + 1}, letter {one[0][1:5].decode()} -> {new.decode()}"


def _gone(bench: Bench) -> Iterator[tuple[str, str | None]]:
    """Another program has saved the PDF: its text is compared, and that its bytes are others is said."""
    from pypdf import PdfWriter

    pdf = bench.made("pdf")
    line, _ = printed.recipe_of(pdf) or ("", b"")
    out = io.BytesIO()
    PdfWriter(clone_from=io.BytesIO(pdf)).write(out)
    findings = bench.found(printed.with_recipe(out.getvalue(), line))
    words = {f.what: f.words for f in findings}
    held = words["content"] == "NOT CHECKED" and words["figures"] == "equal"
    yield "pdf, saved by another program", None if held else str(words)


def attacks() -> dict[str, Callable[[str], str]]:
    """Changes of a page's text that a reader sees, by name; what each is given holds what it changes."""

    def number(place: str) -> Callable[[str], str]:
        def change(html: str) -> str:
            found = re.search(place, html, re.DOTALL)
            assert found, place
            digit = found.start(1)
            return html[:digit] + str((int(html[digit]) + 1) % 10) + html[digit + 1 :]

        return change

    def rows(make: Callable[[str, str], str]) -> Callable[[str], str]:
        def change(html: str) -> str:
            found = re.search(r"(<tr><td>[^\n]*</tr>\n)(<tr><td>[^\n]*</tr>\n)", html)
            assert found
            return html[: found.start()] + make(found[1], found[2]) + html[found.end() :]

        return change

    return {
        "a figure of a table": number(r'<table class="figures">.*?<td class="number">\d\.\d(\d)'),
        "an interval": number(r"<small>\d\.\d(\d)\d to"),
        "a figure of a card": number(r'<div class="lane">.*?<b>\d\.(\d)'),
        "where a card's dot stands": number(r'class="dot" style="left: (\d)'),
        "a sentence": number(r'<p class="lead"><strong>[^<]*</strong>[^<]*?(\d)\.\d %'),
        "a note": number(r"<h2>Appendix: remarks.*?</strong>: [^<]*?(\d)"),
        "where a chart's dot stands": number(r'<circle cx="(\d)'),
        "a tick of a chart": number(r'<text class="tick"[^>]*>\d\.(\d)'),
        "a cell of a heat map": number(r'<td style="background[^>]*>\d\.(\d)'),
        "a run's id": number(r'<table class="runs">.*?<code>[a-f]*(\d)'),
        "a record's SHA-256": number(r'<table class="runs">.*?</code>.*?<code>[a-f]*(\d)'),
        "the digest of all": number(r"one after another: <code>[a-f]*(\d)"),
        "the foot of a page": number(r'content: "Records [a-f]*(\d)'),
        "who signs": lambda html: html.replace(
            "A. Uditor", "B. Uditor", html.partition("<script")[0].count("A. Uditor")
        ),
        "a scenario's answer": number(r"<td>re-judge</td><td class=\"number\">\d\.(\d)"),
        "a verdict of a policy": lambda html: re.sub(
            r'<strong class="verdict">(\w+)</strong>',
            lambda m: f'<strong class="verdict">{"fail" if m[1] == "pass" else "pass"}</strong>',
            html,
            count=1,
        ),
        "two rows swapped": rows(lambda one, two: two + one),
        "a row taken out": rows(lambda one, two: two),
        "a row more": rows(lambda one, two: one + one + two),
        "a row that is not shown": rows(lambda one, two: one.replace("<tr>", '<tr style="display:none">') + two),
        "a style": lambda html: html.replace("</style>", "td:last-child { display: none; }</style>"),
    }
