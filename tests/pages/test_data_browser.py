"""Two files truly uploaded in a browser, mapped, and their groups seen."""

import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import uge_core as uge
import uge_core.dashboard as ui

PEOPLE = "number;gender;handle;city\n" + "".join(
    f"{i};{['f', 'm', 'unknown'][i % 3]};u{i:03};{['<img src=x onerror=alert(1)>', '=1+1', 'S'][i // 3 % 3]}\n"
    for i in range(120)
)
FRIENDS = "when,who,whom\n" + "".join(f"{i % 9},u{i:03},u{(i * 7 + 3) % 120:03}\n" for i in range(120))

pytestmark = pytest.mark.browser


def test_two_files_are_uploaded_mapped_and_shown(
    fresh: Callable[..., Any], visit: Callable[..., Any], settled: Callable[[Any], None], tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    (tmp_path / "friends.csv").write_text(FRIENDS)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "model.pkl").write_bytes(b"x")
    tab = visit(fresh(tmp_path / "store"), "data")
    expect(tab.get_by_text("Nothing leaves this machine")).to_be_visible()
    load = tab.get_by_role("button", name="Load files")
    droppers = tab.locator("input[type=file]")
    expect(droppers).to_have_count(2)
    droppers.nth(0).set_input_files(tmp_path / "model.pkl")
    expect(tab.get_by_text("files are not allowed")).to_be_visible()
    droppers.nth(0).set_input_files(tmp_path / "friends.csv")
    expect(tab.get_by_text("friends.csv")).to_be_visible()
    expect(load).to_be_disabled()
    droppers.nth(1).set_input_files(tmp_path / "people.csv")
    expect(load).to_be_enabled()
    load.click()
    expect(tab.get_by_text("120 of 120 ids in the edges are in the nodes")).to_be_visible()
    # Keys alone: a wrong id column shows orphans at once, the right one none.
    ident = tab.get_by_role("combobox", name=re.compile("Id column of the nodes"))
    for typed, said in (("number", "0 of 120 ids"), ("handle", "120 of 120 ids")):
        settled(tab)  # the message above it goes with the first choice, and all below moves up
        ident.click()
        ident.fill(typed)
        expect(tab.get_by_role("option")).to_have_text([typed])  # Enter takes what the list shows
        ident.press("Enter")
        expect(tab.get_by_text(f"{said} in the edges")).to_be_visible()
    tab.get_by_role("button", name="Write dataset.yaml").click()
    expect(tab.get_by_role("heading", name="Group sizes")).to_be_visible()
    expect(tab.get_by_text("gender: 2 groups, the largest f with 33.3%; 40 without a value (33.3%)")).to_be_visible()
    # The label of a group is text on the chart too.
    expect(tab.locator("svg text", has_text="<img src=x on").first).to_be_visible()
    assert tab.locator("[data-testid=stMain] img[src=x]").count() == 0
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    tab.reload()
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    expect(tab.get_by_test_id("stException")).to_have_count(0)
    (upload,) = ui.list_uploads(uge.RunStore(tmp_path / "store"))
    assert upload.files == ("dataset.yaml", "friends.csv", "people.csv")
    assert stat.S_IMODE(upload.folder.stat().st_mode) == 0o700
    assert uge.load(upload.folder).attribute("city").num_values == 3


def test_names_become_no_links_and_turn_no_text(
    fresh: Callable[..., Any], visit: Callable[..., Any], tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    names = ["https://evil.example/a", "www.evil.example", "a@evil.example", "one\u202etwo"]
    folder = tmp_path / "www.evil.example"
    folder.mkdir()
    rows = "".join(f"u{i:03},{names[i % 4]},{names[(i // 4) % 4]}\n" for i in range(160))
    (folder / "nodes.csv").write_text(f"id,group,mail\n{rows}", encoding="utf-8")
    (folder / "edges.csv").write_text(
        "source,target\n" + "".join(f"u{i:03},u{(i * 7 + 3) % 160:03}\n" for i in range(160)), encoding="utf-8"
    )
    tab = visit(fresh(tmp_path / "store"), f"data?graph={folder}")
    expect(tab.get_by_role("heading", name="Edge weights")).to_be_visible()
    expect(tab.get_by_text(re.compile("one.u202etwo")).first).to_be_visible()
    assert tab.locator("[data-testid=stMain] a[href*='//'], a[href^=mailto]").count() == 0
    assert tab.evaluate("() => document.body.innerText.includes('\\u202e')") is False
