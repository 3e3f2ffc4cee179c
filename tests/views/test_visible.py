"""Names that would turn the text around them, or become links, in pages, tables, reports and terminals."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pandas as pd

import uge_core.dashboard as ui
from uge_core.cli.printing import text_table

TURNED = "a\u202e\u2066b"


def test_characters_that_turn_text_are_numbers() -> None:
    assert ui.visible(f"{TURNED}\u200f\u061c") == "a\\u202e\\u2066b\\u200f\\u061c"
    assert ui.visible("שלום, été 日本") == "שלום, été 日本"
    assert "\u202e" not in text_table(["name"], [[TURNED]]) + ui.plain_text(TURNED)


def test_tables_are_shown_the_same_way() -> None:
    table = pd.DataFrame({TURNED: [TURNED, None], "n": [1, 2]})
    shown = ui.visible_cells(table)
    assert list(shown) == ["a\\u202e\\u2066b", "n"] and shown.iloc[0, 0] == "a\\u202e\\u2066b"
    assert shown["n"].tolist() == [1, 2] and table.iloc[0, 0] == TURNED
    plain = pd.DataFrame({"name": ["x"], "n": [1.5]})
    assert ui.visible_cells(plain) is plain


def test_addresses_in_names_are_no_addresses_to_markdown() -> None:
    shown = ui.plain_text("https://evil.example www.evil.example a@evil.example").replace("\\", "")
    for sign in ("https://", "www.e", "a@"):
        assert sign not in shown
    assert shown.replace("\u2060", "") == "https://evil.example www.evil.example a@evil.example"


def test_a_terminal_shows_numbers_and_a_pipe_has_the_characters(tmp_path: Path) -> None:
    printing = "from uge_core.cli.printing import visible_terminal\nwith visible_terminal():\n    print('a\\u202eb')\n"
    command = [sys.executable, "-c", printing]
    env = os.environ | {"PYTHONIOENCODING": "utf-8"}
    assert subprocess.run(command, env=env, capture_output=True, check=True).stdout.decode() == "a\u202eb\n"
    master, terminal = pty.openpty()
    subprocess.run(command, env=env, stdout=terminal, check=True)
    os.close(terminal)
    assert os.read(master, 100).decode() == "a\\u202eb\r\n"
    os.close(master)
