"""The report of stored audits in its four formats, from real runs."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.audit.metrics import METRICS
from uge_core.audit.record import canonical, digest
from uge_core.errors import ConfigError, RunNotFound
from uge_core.files import quoted
from uge_core.graph.suppression import FEWEST, SUPPRESSED_LEGEND
from uge_core.views.report.pdf import browser
from uge_core.views.report.table import rows_csv


@pytest.fixture
def store(seeded):
    return uge.RunStore(seeded)


def audited(store):
    return [r.id for r in store.list() if r.audited]


def test_every_format_holds_the_same_records(store, tmp_path):
    ids = audited(store)
    paths = uge.report(ids, tmp_path / "made", formats=["html", "json", "csv"], store=store)
    assert [p.name for p in paths] == ["report.html", "report.json", "report.csv"]
    html, text, table = (p.read_text(encoding="utf-8-sig") for p in paths)
    records = json.loads(text)
    held = json.loads(re.search(r'id="records">(.*?)</script>', html, re.DOTALL)[1])
    assert canonical(records) == canonical(held)
    lines = list(csv.DictReader(io.StringIO(table, newline="")))
    for record, run_id in zip(records, ids, strict=True):
        assert record["run_id"] == run_id and record["sha256"] == digest(record)
        assert f"<code>{record['sha256']}</code>" in html
        mine = [x for x in lines if x["sha256"] == record["sha256"] and x["kind"] == "row"]
        assert [x["value"] for x in mine] == ["" if r["value"] is None else repr(r["value"]) for r in record["rows"]]
    assert sum(x["kind"] == "cell" for x in lines) == sum(len(r["cells"]) for rec in records for r in rec["rows"])


def test_every_number_of_the_tables_is_a_records(store):
    run_id = audited(store)[0]
    record = store.load(run_id).audit
    html = ui.contents([run_id], store=store)["html"]().decode()
    shown = set(re.findall(r'<td class="number">([0-9][0-9.,e-]*)</td>', html))
    from uge_core.views.report.document import _number

    numbers = [x for r in record["rows"] for x in (r["value"], r["p_value"], *(c["value"] for c in r["cells"]))]
    counts = [x for r in record["rows"] for x in (r["n"], *(c["n"] for c in r["cells"]))]
    known = {_number(x) for x in numbers if x is not None} | {f"{x:,}" for x in counts if x is not None}
    assert shown and shown <= known


def test_the_page_asks_nothing_of_any_host(store):
    html = ui.contents(audited(store), store=store)["html"]().decode()
    assert len(html) < 8_000_000
    without_plotly = re.sub(r"<script>.*?</script>", "", html, count=1, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", without_plotly)
    assert "default-src 'none'" in html and '"showSendToCloud": false' in without_plotly


def test_what_people_typed_and_data_are_text_not_markup(store):
    evil = "<script>alert(1)</script>"
    sheet = ui.Sheet(title=evil, author=evil, purpose="</script>" + evil)
    html = ui.contents(audited(store)[:1], sheet=sheet, store=store)["html"]().decode()
    assert evil not in html and "&lt;script&gt;alert(1)" in html


def test_a_value_that_closes_the_script_stays_in_the_records(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock")))
    run = store.load(audited(store)[0])
    record = run.audit | {"rows": [r | {"note": "</script><b>"} for r in run.audit["rows"]]}
    store.save_audit(run.id, record)
    html = ui.contents([run.id], store=store)["html"]().decode()
    held = re.search(r'id="records">(.*?)</script>', html, re.DOTALL)[1]
    assert json.loads(held)[0]["rows"][0]["note"] == "</script><b>"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_no_csv_cell_starts_a_formula(start):
    assert quoted(start + "cmd") == "'" + start + "cmd" and quoted(-1.5) == -1.5
    row = {"metric": "dp", "attribute": start + "A1", "value": -0.5, "cells": [{"a": start, "b": None, "n": 3}]}
    text = rows_csv([{"sha256": "0", "run_id": "r", "dataset": {"name": "d"}, "rows": [row]}])
    cells = [c for line in csv.reader(io.StringIO(text, newline="")) for c in line]
    assert all(c[:1] not in "=+@\t\r\n-" or c == "-0.5" for c in cells if c)


@pytest.mark.parametrize(
    ("runs", "given", "says"),
    [
        ([], {}, "at least one run"),
        (["0123456789ab"], {}, "no run"),
        (None, {"formats": ["docx"]}, "unknown format 'docx'"),
        (None, {"formats": ["html"], "out": "x.pdf"}, "ends in .pdf"),
    ],
)
def test_errors_say_what_to_do(store, tmp_path, runs, given, says):
    out = tmp_path / given.pop("out", "made")
    with pytest.raises((ConfigError, RunNotFound), match=says):
        uge.report(audited(store) if runs is None else runs, out, store=store, **given)


def test_without_a_browser_a_pdf_is_refused_with_the_remedy(store, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "nowhere"))
    assert browser() is None
    with pytest.raises(ConfigError, match="install one"):
        uge.report(audited(store), tmp_path / "r.pdf", store=store)


@pytest.mark.browser
def test_a_browser_prints_it(store, tmp_path, chromium, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", chromium)
    (path,) = uge.report(audited(store), tmp_path / "r.pdf", store=store)
    assert path.read_bytes()[:5] == b"%PDF-" and path.stat().st_size > 20_000


def test_the_command_line_writes_what_verify_takes(store, tmp_path):
    run_id = audited(store)[0]
    made = tmp_path / "one.json"
    command = [sys.executable, "-m", "uge_core"]
    kept = ["--store", str(store.root)]
    done = subprocess.run(
        [*command, "report", run_id, "--out", str(made), *kept], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(made)]
    assert json.loads(made.read_text())["sha256"] == store.load(run_id).audit["sha256"]


def test_a_sheet_keeps_its_defaults():
    assert replace(ui.Sheet(), title="x").author == ""


def test_suppressed_cells_tell_neither_value_nor_number():
    ends = {"ci_low": 0.125, "ci_high": 0.5}
    blank = {"value": None, "ci_low": None, "ci_high": None, "n": 0}
    cells = [
        {"a": "x", "b": "x", "value": 0.25, "n": FEWEST - 1, "excluded": True, **ends},  # as earlier versions stored it
        {"a": "x", "b": "y", "excluded": True, "withheld": True, **blank},
        {"a": "y", "b": "y", "value": 0.25, "n": FEWEST, "excluded": True, "withheld": False, **ends},
        {"a": "y", "b": "z", "excluded": True, "withheld": False, **blank},
    ]
    row = {"metric": "eo", "attribute": "city", "value": None, "cells": cells}
    text = rows_csv([{"sha256": "0", "run_id": "r", "dataset": {"name": "d"}, "rows": [row]}])
    told = [x for x in csv.DictReader(io.StringIO(text, newline="")) if x["kind"] == "cell"]
    assert [(x["value"], x["ci_low"], x["ci_high"], x["n"]) for x in told] == [
        ("", "", "", "suppressed"),
        ("", "", "", "suppressed"),
        ("0.25", "0.125", "0.5", str(FEWEST)),
        ("", "", "", "0"),
    ]


def test_the_page_says_once_what_suppressed_is(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock")))
    run = store.load(audited(store)[0])
    (first,) = [r for r in run.audit["rows"] if r["metric"] == "dp" and r["attribute"] == "city" and not r["variant"]]
    small, other, none, *_ = first["cells"]
    cells = [
        {**small, "n": FEWEST - 1, "value": 0.98765},
        {**other, "n": 0, "value": None, "ci_low": None, "ci_high": None, "excluded": True, "withheld": True},
        {**none, "n": 0, "value": None, "ci_low": None, "ci_high": None, "excluded": True},
    ]
    store.save_audit(run.id, run.audit | {"rows": [{**first, "cells": cells}]})
    html = ui.contents([run.id], store=store)["html"]().decode().partition('<script type="application/json"')[0]
    (table,) = re.findall(r"<summary>Group pairs of city.*?</details>", html, re.DOTALL)
    lines = re.findall(r"<tr><td>(.*?)</tr>", table)
    assert [re.sub(r"<[^>]*>", "|", x) for x in lines] == [
        f"{small['a']} and {small['b']}||||||suppressed|||",
        f"{other['a']} and {other['b']}||||||suppressed|||",
        f"{none['a']} and {none['b']}||none||||0||too few, left out|",
    ]
    assert table.count(SUPPRESSED_LEGEND) == 1 and "0.988" not in html


def test_the_page_says_first_which_embeddings_are_usable(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock")))
    first, second, third = [r for r in store.list() if r.audited][:3]
    rows = {}
    for run, value, note in ((first, 1.0, None), (second, 0.0, "not usable: all <b>vectors</b> are equal")):
        (row, *_) = [r for r in run.audit["rows"] if r["metric"] == "usable"]
        kept = [r for r in run.audit["rows"] if r["metric"] != "usable"]
        rows[run.id] = [*kept, row | {"value": value, "evidence": "ok", "note": note, "exposure": None}]
    rows[third.id] = [r for r in third.audit["rows"] if r["metric"] != "usable"]
    for run in (first, second, third):
        store.save_audit(run.id, run.audit | {"rows": rows[run.id]})
    html = ui.contents([first.id, second.id, third.id], store=store)["html"]().decode()
    said = re.findall(r'<li>[^<]*: <span class="verdict">([^<]*)</span>(.*?)</li>', html)
    assert said == [
        ("usable", ""),
        ("not usable", " (all &lt;b&gt;vectors&lt;/b&gt; are equal)"),
        ("usability not known", " (audited by an earlier version, which did not ask)"),
    ]
    assert html.index("not usable</span>") < html.index("<h2>Leakage</h2>")


def test_link_quality_stands_beside_the_degree_floor_and_the_matched_figure_first(store):
    record = store.load(audited(store)[0]).audit
    html = (
        ui.contents([record["run_id"]], store=store)["html"]().decode().partition('<script type="application/json"')[0]
    )
    captions = re.findall(r"<caption[^>]*><strong>(.*?)</strong>", html)
    matched, usual = (captions.index(METRICS[m].label) for m in ("ndcg_at_10_matched", "ndcg_at_10"))
    assert matched < usual
    (row, *_) = [r for r in record["rows"] if r["metric"] == "ndcg_at_10_matched" and r["value"] is not None]
    assert f"degree {row['floor_degree']:.3f}</td>" in html
    assert "city · raw" in html and "city · calibrated" in html
