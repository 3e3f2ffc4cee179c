"""The report of stored audits in its four formats, from real runs."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.audit.record import canonical, digest
from uge_core.cli.main import run as uge_command
from uge_core.errors import ConfigError, RunNotFound
from uge_core.files import quoted
from uge_core.graph.suppression import FEWEST, SUPPRESSED_LEGEND
from uge_core.views.report import pieces, printed
from uge_core.views.report.origin import public_name
from uge_core.views.report.pdf import browser
from uge_core.views.report.summary import report_rows
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
    assert hashlib.sha256("".join(r["sha256"] for r in records).encode()).hexdigest() in html
    assert sum(x["kind"] == "cell" for x in lines) == sum(len(r["cells"]) for rec in records for r in rec["rows"])


def test_the_page_asks_nothing_of_any_host(store):
    html = ui.contents(audited(store), store=store)["html"]().decode()
    assert len(html) < 8_000_000
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", html)
    # No script runs: the two that are there hold data.
    assert "default-src 'none'" in html and "script-src" not in html
    assert set(re.findall(r"<script[^>]*>", html)) == {
        f'<script type="application/json" id="{name}">' for name in ("records", "recipe")
    }


def test_what_people_typed_and_data_are_text_not_markup(store):
    evil = "<script>alert(1)</script>"
    sheet = ui.Sheet(title=evil, author=evil, purpose="</script>" + evil)
    html = ui.contents(audited(store)[:1], sheet=sheet, store=store)["html"]().decode()
    assert evil not in html and "&lt;script&gt;alert(1)" in html


def test_a_value_that_closes_the_script_stays_in_the_records(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
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
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
    run = store.load(audited(store)[0])
    (row,) = [
        r for r in run.audit["rows"] if (r["metric"], r["attribute"], r["variant"]) == ("dp", "city", "calibrated")
    ]
    small, other, none, *_ = row["cells"]
    cells = [
        {**small, "n": FEWEST - 1, "value": 0.98765},
        {**other, "n": 0, "value": None, "ci_low": None, "ci_high": None, "excluded": True, "withheld": True},
        {**none, "n": 0, "value": None, "ci_low": None, "ci_high": None, "excluded": True},
    ]
    rest = [r for r in run.audit["rows"] if r["metric"] not in ("dp", "eo")]
    store.save_audit(run.id, run.audit | {"rows": [*rest, {**row, "cells": cells}]})
    html = ui.contents([run.id], store=store, attribute="city")["html"]().decode()
    html = html.partition('<script type="application/json"')[0]
    (table,) = re.findall(r'<table class="pairs">.*?</table>', html, re.DOTALL)
    lines = re.findall(r"<tr><td>(.*?)</tr>", table)
    assert [re.sub(r"(<[^>]*>)+", "|", x) for x in lines] == [
        f"{small['a']} and {small['b']}|suppressed|",
        f"{other['a']} and {other['b']}|suppressed|",
        f"{none['a']} and {none['b']}|none|0|too few, left out|",
    ]
    assert html.count(SUPPRESSED_LEGEND) == 1 and "0.988" not in html


def test_the_first_page_says_which_embeddings_are_usable(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
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
    (said,) = re.findall(r"<strong>Not usable</strong>: (.*?) An embedding that is not usable says nothing", html)
    labels = {row.runs[0].id: row.label for row in report_rows([first, second, third])}
    assert f"{labels[second.id]} (all &lt;b&gt;vectors&lt;/b&gt; are equal)" in said and labels[first.id] not in said
    assert f"{labels[third.id]} (audited by an earlier version, which did not ask)" in said
    assert html.index("<strong>Not usable</strong>") < html.index("Scope and purpose")


def test_link_quality_stands_beside_the_degree_floor_and_the_matched_figure_first(store):
    record = store.load(audited(store)[0]).audit
    html = (
        ui.contents([record["run_id"]], store=store)["html"]().decode().partition('<script type="application/json"')[0]
    )
    heads = re.findall(r'<th class="number">(.*?) <small>', html)
    assert heads.index("matched NDCG@10") < heads.index("NDCG@10")
    (row, *_) = [r for r in record["rows"] if r["metric"] == "ndcg_at_10_matched" and r["value"] is not None]
    assert f"degree {row['floor_degree']:.3f}</td>" in html


# Numbers.


def interval_of(values, rows):
    """The ends over seeds, and over people, by their definitions: Student's t, and the mean of the rows' own ends."""
    if len(values) == 1:
        return rows[0]["ci_low"], rows[0]["ci_high"]
    own = [(r["ci_low"], r["ci_high"]) for r in rows]
    if len(values) < 3:
        return min(x for x, _ in own), max(y for _, y in own)
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    low = max(np.mean(values) - half, 0.0 if min(values) >= 0 else -np.inf)
    high = min(np.mean(values) + half, 1.0)
    return min(low, np.mean([x for x, _ in own])), max(high, np.mean([y for _, y in own]))


def expected(records, attribute, metric):
    """What a cell of the appendix has to say, from the JSON alone."""
    rows = []
    for record in records:
        of = [r for r in record["rows"] if r["attribute"] == attribute]
        lead = sorted(
            (r for r in of if r["metric"] == "auc" and r["attacker"] == "worst"), key=lambda r: r["exposure"] == "seen"
        )
        exposure = lead[0]["exposure"]
        if metric in ("dp", "eo"):
            mine = [
                r for r in of if (r["metric"], r["variant"]) == (metric, "calibrated") and r["exposure"] != "unseen"
            ]
        elif metric == "ndcg_at_10":
            mine = [r for r in record["rows"] if (r["metric"], r["variant"]) == (metric, "held-out")]
        else:
            who = "worst" if metric in ("auc", "micro_f1") else None
            mine = [
                r
                for r in of
                if r["metric"] == metric and r["attacker"] == who and r["variant"] in ("standard", "held-out")
            ]
        if metric not in ("dp", "eo"):
            mine = [r for r in mine if exposure is None or r["exposure"] in (exposure, None)]
            mine.sort(key=lambda r: (r["exposure"] != exposure, r["exposure"] == "seen"))
        rows += [r for r in mine[:1] if r["value"] is not None]
    if not rows:
        return None
    values = [r["value"] for r in rows]
    floors = [[r[f] for r in rows if r[f] is not None] for f in ("floor_random", "floor_majority", "floor_degree")]
    return ([np.mean(values), *interval_of(values, rows)], rows[0]["n"], [np.mean(f) for f in floors if f])


def differences(rows, attribute):
    """After - before over the seeds that both have, of leakage and of link quality, with an interval over seeds (Student's
    t) and people (both sides' half-widths), added as squares."""
    sides = [next(of for label, of in rows.items() if label.startswith(name)) for name in ("No debiasing", "UGE-ORK")]
    for metric in ("auc", "ndcg_at_10_matched"):
        before, after = (
            {r["config"]["seed"]: expected([r], attribute, metric)[0] for r in records} for records in sides
        )
        found = [after[seed][0] - before[seed][0] for seed in before]
        people = [np.mean([(high - low) / 2 for _, low, high in side.values()]) for side in (before, after)]
        half = np.hypot(
            stats.t.ppf(0.975, len(found) - 1) * np.std(found, ddof=1) / len(found) ** 0.5, np.hypot(*people)
        )
        yield from (abs(v) for v in (np.mean(found), np.mean(found) - half, np.mean(found) + half))


METRIC_HEADS = {
    "AUC": "auc",
    "Micro-F1": "micro_f1",
    "matched NDCG@10": "ndcg_at_10_matched",
    "NDCG@10": "ndcg_at_10",
    "DP gap, calibrated": "dp",
    "EO gap, calibrated": "eo",
}


def printed_right(shown, value):
    """A number at its printed precision."""
    digits = len(shown.partition(".")[2])
    return abs(float(shown) - value) <= 0.5 * 10**-digits + 1e-12


def figure_tables(html):
    for table in re.findall(r'<table class="figures"><caption>.*?</table>', html, re.DOTALL):
        caption = re.search(r"<caption>(.*?)</caption>", table)[1]
        heads = [METRIC_HEADS[h] for h in re.findall(r'<th class="number">(.*?) <small>', table)]
        lines = [
            (re.match(r"<td>(.*?)</td>", tr)[1], re.findall(r'<td class="number">(.*?)</td>', tr))
            for tr in re.findall(r"<tr(?: class=\"shared\")?>(<td>.*?)</tr>", table, re.DOTALL)
        ]
        yield caption, heads, lines


@pytest.mark.slow
def test_every_number_of_the_tables_is_that_of_the_json(sample_audit):
    """Of 27 runs in nine rows over their seeds, by an implementation of its own; the CSV's are the JSON's own digits."""
    store = uge.RunStore(sample_audit)
    ids = audited(store)
    made = ui.contents(ids, store=store)
    html, content = made["html"]().decode(), json.loads(made["json"]())
    records = {r["run_id"]: r for r in content}
    rows = {row.label: [records[i] for i in row.ids] for row in report_rows([store.load(i) for i in ids])}
    seen = 0
    for attribute, heads, lines in figure_tables(html):
        shared = {label: cells for label, cells in lines if label.endswith(", of all")}
        for label, cells in lines:
            if label in shared:
                continue
            for i, (metric, cell) in enumerate(zip(heads, cells, strict=True)):
                numbers, n, floors = expected(rows[label], attribute, metric)
                value, rest = cell.partition("<small>")[::2]
                ends = re.findall(r"(-?\d\.\d{3}) to (-?\d\.\d{3})", rest)[0]
                for shown, due in zip((value, *ends), numbers, strict=True):
                    assert printed_right(shown, due), (attribute, label, metric, shown, due)
                said = " ".join([rest, *(cells[i] for cells in shared.values())])
                assert f"n {n:,}" in said
                told = re.findall(r"(?:chance|majority|degree) (-?\d\.\d{3})", said)
                assert len(told) == len(floors) and all(map(printed_right, told, floors)), (label, metric, told, floors)
                seen += 1 + len(ends) + len(told)
    assert seen > 5 * 9 * 6 * 3
    # Cards, chart and heat maps: each figure is one of these embeddings' own.
    sheets = html.partition('<section class="appendix">')[0].partition("<main>")[2]
    sheets = re.sub(r'<text class="tick".*?</text>|<code>.*?</code>|<style>.*?</style>|<[^>]*>', " ", sheets)
    due = [
        v
        for attribute in ("region", "gender", "age", "club", "work")
        for m in METRIC_HEADS.values()
        for of in rows.values()
        for group in ((expected(of, attribute, m) or ([], 0, []))[j] for j in (0, 2))
        for v in group
    ]
    due += [
        row[f]
        for of in rows.values()
        for row in of[0]["rows"]
        if (row["metric"], row["variant"]) == ("dp", "calibrated")
        for f in ("value", "ci_low", "ci_high", "floor_random", "floor_degree", "p_value")
        if row[f] is not None
    ]
    due += [
        c[f]
        for of in rows.values()
        for row in of[0]["rows"]
        if (row["metric"], row["variant"]) == ("dp", "calibrated")
        for c in row["cells"]
        for f in ("value", "ci_low", "ci_high")
        if c[f] is not None
    ]
    due += [v for attribute in ("region", "gender", "age", "club", "work") for v in differences(rows, attribute)]
    due += [low for attribute in ("region", "age") for r in content for low in expected([r], attribute, "auc")[0][1:2]]
    shown = re.findall(r"(?<![\d.,])\d\.\d{3}(?!\d)", sheets)
    assert len(shown) > 60
    assert [x for x in shown if not any(printed_right(x, v) for v in due)] == []
    counts = {f"{r['n']:,}" for of in rows.values() for record in of for r in record["rows"] if r["n"]}
    counts |= {f"{c['n']:,}" for of in rows.values() for record in of for r in record["rows"] for c in r["cells"]}
    counts |= {f"{content[0]['dataset'][k]:,}" for k in ("num_nodes", "num_edges")}
    counts.add(f"{content[0]['dataset']['num_nodes'] - 400:,}")  # all have a value; those not tested are learned from
    assert set(re.findall(r"\d{1,3}(?:,\d{3})+", sheets)) <= counts
    # A changed digit anywhere in the two pages is found.
    page = pieces.pieces(html)
    for at in [m.start() for m in re.finditer(r"\d(?=[^<>]*<)", html[: html.index('<section class="appendix">')])][
        100::40
    ]:
        other = html[:at] + str((int(html[at]) + 1) % 10) + html[at + 1 :]
        assert pieces.first_difference(pieces.pieces(other), page) is not None, html[at - 40 : at + 10]


# Two pages.

QUESTIONS = {
    "what data": ("town", "CC0-1.0", "drawn by uge_core", "Fingerprint"),
    "how many people": ("2,000 people, 20,028 edges", "400 people tested", "4,006 links ranked"),
    "which attribute": ("region", "gender", "age", "club", "work"),
    "what leaked before and after": ("Before: No debiasing", "After: UGE-ORK", "REDUCED", "LEAKS", "NO LEAK SHOWN"),
    "what got worse": (
        "Besides, work leaks, more than before (0.757 before, 0.934 after); club leaks (1.000 before and after); "
        "age leaks by one of its seeds (0.581 before, 0.588 after).",
        "It leaks by one of its seeds, whose interval begins at 0.557.",
        "LEAKS, MORE THAN BEFORE",
    ),
    "what is not ruled out": (
        "A leak of up to 0.645 is not ruled out.",
        "NO LEAK SHOWN, up to 0.618 not ruled out",
        "a loss of up to 0.035 is not ruled out",
        "that of region lies above a coin",
    ),
    "who chose": ("It is one of 8 embeddings", "B is the last treated one here, as none was named"),
    "what did the method do": ("UGE-ORK (a method of this package): a share of UGE-O", "λ is how much", "Seed:"),
    "is it about people": ("About made-up data: nobody in it is real",),
    "who is in it": ("learned from 1,600 others", "nobody is left out for being in a small group"),
    "how sure": (
        "n = 400",
        "95 % intervals are over the people tested and the seeds",
        "The strongest of these attackers",
    ),
    "what it cost": (
        "Link quality (matched NDCG@10)",
        "What less leakage cost",
        "a random order",
        "training degree alone",
        "leak above 0.55",
        "as many pairs with a link as without are compared",
    ),
    "what was not tested": ("What was not tested", "any other may be readable", "People who join later"),
    "who set the threshold": (
        "the lower end of the 95 % interval of the AUC above 0.55",
        "Threshold set by: The board on 3 March, before seeing results. No policy file was given",
    ),
    "can I run it again": (
        "uge rerun report.json --data sample:town",
        "uge verify report.html",
        "SHA-256",
        "with uge_core 0.1.0",
    ),
    "what must I not conclude": (
        "What must not be concluded",
        "Two figures whose difference is not shown may differ",
        "is anonymous",
        "cannot be read",
        "lawful",
    ),
}


@pytest.mark.browser
def test_two_printed_pages_answer_what_a_reviewer_asks(sample_audit, chromium, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", chromium)
    store = uge.RunStore(sample_audit)
    sheet = ui.Sheet(
        author="A. Uditor",
        role="auditor",
        purpose="Friend suggestions.",
        threshold_by="The board",
        threshold_when="before",
        threshold_on="3 March",
    )
    made = ui.contents(audited(store), store=store, sheet=sheet)
    pdf = made["pdf"]()
    pages = printed.pages(pdf)
    two = printed.letters("".join(line for page in pages[:2] for line in page))
    assert not any(printed.letters(said) in two for said in ("(ours)", "It stays personal data", "No policy was given"))
    for question, answers in QUESTIONS.items():
        assert [a for a in answers if printed.letters(a) not in two] == [], question
    for page, ends in enumerate(("What was found", "What less leakage cost", "Appendix: all embeddings")):
        assert any(printed.letters(ends) in printed.letters(line) for line in pages[page][:4]), page
    assert "Signature" in "".join(pages[1]) and "A. Uditor" in "".join(pages[1])
    assert len(pages) <= 12 and f"Page 1 of {len(pages)}" in "".join(pages[0])
    from pypdf import PdfReader

    boxes = {tuple(round(float(x)) for x in p.mediabox) for p in PdfReader(io.BytesIO(pdf)).pages}
    assert boxes <= {(0, 0, 595, 842), (0, 0, 596, 842)}


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["empty", "full", "crowded"])
def test_they_stay_two_pages_whatever_is_typed_and_named(seeded, sample_audit, tmp_path, chromium, monkeypatch, kind):
    """The longest of everything: names of attributes, groups and data, sign-off texts, rules; and nothing at all."""
    from playwright.sync_api import sync_playwright

    monkeypatch.setenv("BROWSER_PATH", chromium)
    root = sample_audit if kind == "crowded" else seeded
    store = uge.RunStore(shutil.copytree(root, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
    sheet, rules = ui.Sheet(title=""), None
    if kind != "empty":
        long = "Wherever one goes, WWWW there is a name that is long beyond all measure and reason "
        for run in store.list():
            rows = []
            for row in run.audit["rows"]:
                names = {"city": f"city {long * 2}", "gender": f"gender{'W' * 120}"}
                names |= {"age": f"age {long * 2}"} if kind == "crowded" else {}
                name = names.get(row["attribute"], row["attribute"])
                cells = [{**c, **{end: c[end] and f"{c[end]} {long}" for end in ("a", "b")}} for c in row["cells"]]
                rows.append(row | {"attribute": name, "cells": cells})
                if row["attribute"] == "age":
                    rows += [row | {"attribute": f"age{'m' * 60}{i}"} for i in range(9)]
            config = run.config | {"sensitive": [f"city {long * 2}"] if run.config["sensitive"] else []}
            data = run.audit["dataset"] | {"name": long * 3}
            store.save_audit(run.id, run.audit | {"rows": rows, "config": config, "dataset": data})
        sheet = ui.Sheet(*[long * 8] * 5, "before", *[long * 8] * 4)
        rules = "- {metric: auc, attribute: '*', direction: at_most, number: 0.6}\n" * 9
    made = ui.contents(
        audited(store),
        store=store,
        sheet=sheet,
        attribute=f"age {long * 2}" if kind == "crowded" else "",
        policy=None if rules is None else ("rules of ours", rules),
    )
    path = tmp_path / "made.html"
    path.write_bytes(made["html"]())
    pages = printed.pages(made["pdf"]())
    assert any("What less leakage cost" in line for line in pages[1][:3])
    assert any("Appendix" in line for line in pages[2][:3]), pages[2][:5]
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 695, "height": 1000})
        page.goto(path.as_uri())
        page.emulate_media(media="print")
        spilled = page.evaluate(
            "() => [...document.querySelectorAll('.sheet')].map(e => e.scrollHeight - e.clientHeight).filter(x => x > 0)"
        )
        assert spilled == []
        for media, width in (("print", 695), ("screen", 1400), ("screen", 820), ("screen", 390)):
            page.emulate_media(media=media)
            page.set_viewport_size({"width": width, "height": 1000})
            clipped = page.evaluate(
                """() => [...document.querySelectorAll('main *')].filter(e => !e.closest('.scroll, svg, .track')
                && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(e => e.outerHTML.slice(0, 90))"""
            )
            assert clipped == [], (media, width)
        browser.close()


# Sign-off, policy, sections, sides.


def shown(made):
    return made["html"]().decode().partition('<script type="application/json"')[0]


def test_what_is_typed_is_signed_for_and_what_is_not_is_a_blank_line(store):
    ids = audited(store)
    blank = shown(ui.contents(ids, store=store))
    assert blank.count('class="line"') == 2 and "☐ before ☐ after seeing results" in blank
    assert "not said in its dataset.yaml" in blank
    sheet = ui.Sheet(
        author="A. <b>",
        role="auditor",
        purpose="x" * 600,
        threshold_by="The board",
        threshold_when="after",
        threshold_on="1 May",
        remarks="None.",
        source="a survey",
        licence="ours",
    )
    html = shown(ui.contents(ids, store=store, sheet=sheet))
    for words in (
        "A. &lt;b&gt;, auditor",
        "Threshold set by: The board on 1 May, after seeing results",
        "a survey",
        "ours",
    ):
        assert words in html
    assert "☐" not in html and 'class="line"' not in html
    # What the first pages have no room for stands in the appendix.
    assert "x" * 600 in html.partition('<section class="appendix">')[2]
    with pytest.raises(ConfigError, match="allowed: before, after, or nothing"):
        ui.contents(ids, store=store, sheet=ui.Sheet(threshold_when="never"))


def test_a_policy_passes_or_fails_and_its_records_say_so(store, tmp_path):
    ids = audited(store)
    path = tmp_path / "rules.yaml"
    path.write_text("- {metric: auc, attribute: city, direction: at_most, number: 0.999, on: value}\n")
    html, content = uge.report(ids, tmp_path / "made", formats=["html", "json"], store=store, policy=path)
    text, records = html.read_text(), json.loads(content.read_text())
    assert text.count('<strong class="verdict">') == 2 and "<code>rules.yaml</code>" in text
    assert "No policy file was given" not in text and "have limits of their own" in text
    assert all(r["policy"]["name"] == "rules.yaml" and r["sha256"] == digest(r) for r in records)
    for made in (html, content):
        assert uge_command(["verify", str(made), "--quick", "--store", str(store.root)]) == 0
    with pytest.raises(ConfigError, match="holds a text; allowed: a list of rules"):
        ui.contents(ids, store=store, policy=("rules", "nothing"))


def test_sides_and_sections_are_those_that_were_chosen(store, tmp_path):
    runs = [r for r in store.list() if r.audited]
    first, second = (next(r for r in runs if r.config["method"] == m) for m in ("uge-w", "uge-c"))
    ids = [r.id for r in runs]
    chosen = {"before": first.id, "after": second.id, "attribute": "gender", "sections": ["pairs"]}
    html = shown(ui.contents(ids, store=store, **chosen))
    labels = {row.runs[0].id: row.label for row in report_rows(runs)}
    assert f"Before: {labels[first.id]}. After: {labels[second.id]}." in html
    assert re.search(r'<div class="cards">\s*<div class="card[^>]*>\s*<h3>gender ', html)
    heads = re.findall(r"<h2>Appendix: (.*?)</h2>", html)
    assert heads == ["pairs of gender groups", "runs"]
    path = tmp_path / "r.html"
    uge.report(ids, path, store=store, **chosen)
    assert re.findall(r"<h2>Appendix: (.*?)</h2>", path.read_text()) == heads
    assert uge_command(["verify", str(path), "--quick", "--store", str(store.root)]) == 0
    for wrong, said in (
        ({"before": "x"}, "is not in the report"),
        ({"attribute": "x"}, "was not audited for 'x'"),
        ({"sections": ["x"]}, "unknown section 'x'"),
    ):
        with pytest.raises(ConfigError, match=said):
            ui.contents(ids, store=store, **wrong)
    alone = shown(ui.contents(ids[:1], store=store, sections=[]))
    assert "Nothing is compared with it." in alone and re.findall(r"<h2>Appendix: (.*?)</h2>", alone) == ["runs"]


def test_a_comparison_that_is_measured_later_changes_no_report(store, tmp_path):
    """Of the records alone: what the store keeps besides, as paired differences, is in no JSON and moves no verdict."""
    ids = audited(store)
    path = tmp_path / "r.html"
    uge.report(ids, path, store=store)
    before = path.read_bytes()
    from uge_core.views import separation as tested

    assert tested._in_pairs(None, store.load(ids[0]), store.load(ids[1]), store.load(ids[0]).rows[0], None) is None
    made = ui.contents(ids, store=store, made=re.search(r"Made (.*?)\. \d", before.decode())[1])["html"]()
    assert pieces.first_difference(pieces.pieces(made.decode()), pieces.pieces(before.decode())) is None


def test_the_headline_tells_what_got_worse_what_still_leaks_and_what_is_not_ruled_out(seeded, tmp_path):
    store = uge.RunStore(shutil.copytree(seeded, tmp_path / "copy", ignore=shutil.ignore_patterns("*.sock", "*.pid")))
    runs = {r.config["method"]: r for r in store.list() if r.audited}
    aucs = {  # value and interval, before and after
        "city": ((0.9, 0.88, 0.92), (0.52, 0.49, 0.54)),
        "gender": ((0.52, 0.5, 0.54), (0.8, 0.75, 0.85)),
        "age": ((0.9, 0.88, 0.92), (0.7, 0.68, 0.72)),
    }
    for side, method in enumerate(("none", "uge-c")):
        rows = []
        for row in runs[method].audit["rows"]:
            if (row["metric"], row["attacker"]) == ("auc", "worst") and row["attribute"] in aucs:
                value, low, high = aucs[row["attribute"]][side]
                exposure = "unseen" if side else None
                row |= {"value": value, "ci_low": low, "ci_high": high, "evidence": "ok", "exposure": exposure}
            rows.append(row)
        store.save_audit(runs[method].id, runs[method].audit | {"rows": rows})
    ids = {"before": runs["none"].id, "after": runs["uge-c"].id}
    html = shown(ui.contents([*ids.values()], store=store, **ids))
    badges = dict(re.findall(r'<h3>(\w+) <span class="badge">(.*?)</span>', html))
    assert badges == {"city": "REDUCED", "gender": "LEAKS, MORE THAN BEFORE", "age": "REDUCED, STILL LEAKS"}
    (lead,) = re.findall(r'<p class="lead">(.*?)</p>', html, re.DOTALL)
    assert "city: reduced, no leak is shown any more." in lead and "A leak of up to" not in lead  # it ends at 0.54
    assert (
        "Besides, gender leaks, more than before (0.520 before, 0.800 after); age is reduced, still leaks "
        "(0.900 before, 0.700 after)."
    ) in lead
    # Where a leak is not ruled out, and where the interval lies above a coin, it is said.
    run = store.load(runs["uge-c"].id)
    for row in (rows := [dict(r) for r in run.audit["rows"]]):
        if (row["metric"], row["attacker"], row["attribute"]) == ("auc", "worst", "city"):
            row |= {"ci_low": 0.505, "ci_high": 0.645}
    store.save_audit(run.id, run.audit | {"rows": rows})
    html = shown(ui.contents([*ids.values()], store=store, **ids))
    assert "A leak of up to 0.645 is not ruled out." in html and "that of city lies above a coin" in html


def test_data_of_people_stay_personal_and_a_choice_has_somebody_who_made_it(store, sample_audit):
    html = shown(ui.contents(audited(store), store=store))
    assert "It stays personal data of those in it." in html and "made-up data" not in html
    sample = uge.RunStore(sample_audit)
    ids = audited(sample)
    after = next(r.id for r in sample.list(audits=False) if r.config["method"] == "uge-ok")
    html = shown(ui.contents(ids, store=sample, after=after, sheet=ui.Sheet(author="A. Uditor"), sections=[]))
    assert "It is one of 8 embeddings that were trained to hide region" in html
    assert "B was chosen by who made this report (A. Uditor)." in html
    sheets = html.partition('<section class="appendix">')[0]
    assert "About made-up data: nobody in it is real" in sheets and "(ours)" not in html


def test_the_date_of_a_threshold_is_typed_at_the_command_line(store, tmp_path):
    path = tmp_path / "r.html"
    words = ["report", audited(store)[0], "--out", str(path), "--store", str(store.root)]
    assert uge_command([*words, "--threshold-by", "The board", "--threshold-on", "1 <b>May"]) == 0
    assert "Threshold set by: The board on 1 &lt;b&gt;May, " in path.read_text()
    assert uge_command(["verify", str(path), "--quick", "--store", str(store.root)]) == 0


def test_data_without_an_attribute_make_a_report_that_says_so(tmp_path):
    people = [f"p{i}" for i in range(30)]
    (tmp_path / "data").mkdir()
    edges = [f"{p},{people[(i + step) % 30]}" for i, p in enumerate(people) for step in (1, 2)]
    (tmp_path / "data" / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    (tmp_path / "data" / "nodes.csv").write_text("\n".join(["id", *people]) + "\n")
    store = uge.RunStore(tmp_path / "store")
    run = uge.train(uge.load(tmp_path / "data"), epochs=2, device="cpu", store=store)
    made = ui.contents([run.id], store=store)
    for text in (shown(made), made["card"]().decode()):
        assert "Nothing could be read, for want of an attribute." in text
        assert "What this embedding gives away is not known" in text and "No leak shown" not in text
    for path in uge.report([run.id], tmp_path / "made", formats=["html", "csv", "json"], store=store):
        assert uge_command(["verify", str(path), "--quick", "--store", str(store.root)]) == 0


@pytest.fixture(scope="module")
def two_graphs(seeded, plain_town, tmp_path_factory):
    """A store with runs of two graphs, and the ids of the runs of each."""
    root = tmp_path_factory.mktemp("two") / "store"
    store = uge.RunStore(shutil.copytree(seeded, root, ignore=shutil.ignore_patterns("*.sock", "*.pid")))
    here = audited(store)
    graph = uge.load(plain_town)
    uge.sweep(graph, sensitive="city", methods=["none", "uge-w"], store=store, epochs=2, device="cpu")
    return store, here, [i for i in audited(store) if i not in here]


def test_before_and_after_of_two_graphs_are_refused(two_graphs, tmp_path, capsys):
    store, here, there = two_graphs
    for before, after in ((here[0], there[0]), (there[0], here[0])):
        with pytest.raises(ConfigError, match="before and after must be of one graph"):
            ui.contents([*here, *there], store=store, before=before, after=after)
    words = ["report", here[0], there[0], "--before", here[0], "--after", there[0]]
    assert uge_command([*words, "--out", str(tmp_path / "r.html"), "--store", str(store.root)]) == 2
    assert "before and after must be of one graph" in capsys.readouterr().err


def test_runs_of_another_graph_stay_in_the_appendix(two_graphs):
    store, here, there = two_graphs
    for mine, others in ((here, there), (there, here)):
        for asked in ("before", "after"):
            html = shown(ui.contents([*here, *there], store=store, **{asked: mine[0]}))
            first, _, appendix = html.partition('<section class="appendix">')
            assert all(i in appendix for i in (*mine, *others))
            marks = re.search(r'<table class="marks">.*?</table>', first, re.DOTALL)[0]
            assert marks.count("<tr><td>") == len(report_rows([store.load(i) for i in mine]))


# Model card.


def test_a_model_card_says_what_an_embedding_is_and_gives_away(store, tmp_path, capsys):
    run = next(r for r in store.list() if r.config["method"] == "uge-c")
    command = [
        "runs",
        "export",
        run.id,
        "--out",
        str(tmp_path),
        "--what",
        "embeddings,card",
        "--store",
        str(store.root),
    ]
    assert uge_command([*command, "--purpose", "Friend | suggestions"]) == 0
    assert str(tmp_path / "model-card.md") in capsys.readouterr().out
    text = (tmp_path / "model-card.md").read_text()
    for head in ("Intended use", "Data", "Method", "What it gives away", "What that cost", "Limits", "Hashes"):
        assert f"\n## {head}\n" in text
    record = run.audit
    for told in (
        run.id,
        record["sha256"],
        record["dataset"]["fingerprint"],
        "Friend \\| suggestions",
        "`uge-c`",
        "λ 0.5",
        "Seed: 0",
        hashlib.sha256((tmp_path / "embeddings.npy").read_bytes()).hexdigest(),
        "200 people",
        "uge rerun report.json",
    ):
        assert told in text, told
    for line in re.findall(r"^\| (\w+) \| [A-Z ,]+ \| (\S+) \| (\S+) to (\S+) \| (\S+) \|", text, re.MULTILINE):
        attribute, *numbers, n = line
        due, people, _ = expected([record], attribute, "auc")
        assert all(map(printed_right, numbers, due)) and n == str(people)
    assert {"city", "gender", "age"} <= set(re.findall(r"^\| (\w+) \|", text, re.MULTILINE))


def test_a_model_card_of_a_run_without_an_audit_is_refused(plain_town, tmp_path, capsys):
    store = uge.RunStore(tmp_path / "store")
    source = {"spec": str(plain_town), "attributes": None}
    (run,) = uge.sweep(uge.load(plain_town), store=store, epochs=2, audits=False, device="cpu", source=source)
    words = ["runs", "export", run.id, "--out", str(tmp_path / "out"), "--what", "card", "--store", str(store.root)]
    assert uge_command(words) == 2 and f"uge audit {run.id}" in capsys.readouterr().err


def test_a_note_is_printed_as_it_was_when_the_report_was_made(store, tmp_path):
    from uge_core.runs.notes import pin_note
    from uge_core.views.report.check import check

    run = next(r for r in store.list(audits=False) if r.audited)
    pin_note(store, run.id, "chosen by the board <b>on</b> 1 May")
    (path,) = uge.report([run.id], tmp_path / "r.html", store=store)
    page = path.read_text()
    assert "chosen by the board &lt;b&gt;on&lt;/b&gt; 1 May" in page and run.id in page
    pin_note(store, run.id, "")
    found = list(check(path, store, lambda _: pytest.fail("nothing is measured"), measure=False))
    assert {f.what: f.code for f in found}["figures"] == 0
    (other,) = uge.report([run.id], tmp_path / "s.html", store=store)
    assert "chosen by the board" not in other.read_text()


HOSTILE = ("`<img src=x onerror=1>`", "two\nlines | # <b>", "**x** [y](http://e.example) &lt;b&gt; $z$", "``<i>` \\")


def unescaped(line):
    """What of a line of Markdown is neither escaped nor code."""
    left = re.sub(r"\\[!-/:-@\[-`{-~]|(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line)
    return re.sub(r"\bhttps?\u2060", "", left)


def test_names_in_a_model_card_are_no_formatting(town, tmp_path):
    lines = list(csv.reader(io.StringIO((town / "nodes.csv").read_text())))
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(town / "edges.csv", data)
    names = HOSTILE[: len(lines[0]) - 1]
    with (data / "nodes.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", *names], *lines[1:]])
    store = uge.RunStore(tmp_path / "store")
    graph = uge.load(data)
    names = [a.name for a in graph.attributes]
    assert len(names) == 3
    runs = uge.sweep(
        graph,
        sensitive=names[:1],
        methods=["none", "uge-w"],
        store=store,
        epochs=2,
        device="cpu",
        source={"spec": "sample:town", "attributes": names},
    )
    sheet = ui.Sheet(purpose="\n".join(HOSTILE), source=HOSTILE[3], licence=HOSTILE[1])
    card = ui.contents([r.id for r in runs], sheet=sheet, store=store, after=runs[-1].id)["card"]().decode()
    table = [line for line in card.splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(names)
    for line in card.splitlines():
        left = unescaped(line)
        assert not re.search(r"[<>`$~\[\]*_]|&\w+;|\w@\w+\.|https?:", left), line
        if line.startswith("|"):
            assert left.count("|") == table[0].count("|"), line
        elif line.startswith("#"):
            assert re.match(r"# Model card: |## (?:Intended use|Data|Method|What|Limits|Hashes)", line), line
    # The config is the config still.
    (config,) = [line for line in card.splitlines() if line.startswith("- Config: ")]
    assert json.loads(config.removeprefix("- Config: ").strip("` ")) == store.load(runs[-1].id).config


@pytest.mark.parametrize("column", ["a;b c", "$(id)", "it's", "x > y", "x\ny", "a\u202eb", "year"])
def test_a_columns_name_is_one_word_of_the_command(store, column):
    """Read as a shell reads it; no shell is given it, which would do what a name says where it is not quoted."""
    run = store.load(audited(store)[0])
    source = {"spec": "sample:town", "attributes": ["city", column]}
    name = public_name(replace(run, dataset={**run.dataset, "source": source}))
    assert name.isprintable()
    if column.isprintable():
        words = shlex.shlex(name, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        assert list(words) == ["sample:town", "--attributes", f"city,{column}"]
    else:
        assert re.fullmatch(r"sample:town --attributes \$'[^']*'", name)
