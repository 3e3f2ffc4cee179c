"""What is written for a shell is read by one as it was meant, and holds nothing that a terminal obeys."""

import subprocess

import pytest

from uge_core.errors import shell_word


@pytest.mark.parametrize(
    "name",
    [
        "town",
        "a b",
        "",
        "it's",
        "\u202efdp.\u2066x",
        "a\u2028b\u2029c",
        "\x1b[2J",
        "back\\slash\n'n",
        "\u0430\u0301\x07f",
        "byte\udcffff",
        "\U000e0001a",
    ],
    ids=ascii,
)
def test_a_shell_reads_the_word_that_was_meant(name: str) -> None:
    word = shell_word(name)
    assert word.isprintable()
    command = f"printf %s {word}"
    read = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert read == name.encode("utf-8", "surrogateescape")
