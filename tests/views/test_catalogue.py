"""What methods and backbones say of themselves: complete, true of their code, and the page made of it."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from toys import refused, shop

from uge_core.cli.main import run
from uge_core.debias.supports import describe_method, overridden
from uge_core.plugin import describe
from uge_core.registry import find, names
from uge_core.views import catalogue

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = [(folder, name) for folder in ("debias.methods", "backbones") for name in names(folder)]


@pytest.mark.parametrize(("folder", "name"), PLUGINS)
def test_every_plugin_says_all_there_is_to_say(folder, name):
    cls = find(folder, name)
    info = describe_method(cls) if folder == "debias.methods" else cls.info()
    assert info.name == name and info.label and info.line and info.formula and info.references and info.supports
    assert info.cannot, "a paragraph of the docstring must begin with Cannot:"
    text = "\n".join((info.line, *info.text, *info.departures, *info.cannot))
    assert "Cannot:" not in text and "Departures:" not in text  # each begins a paragraph of its own
    assert {o.name for o in info.options} == {f.name for f in fields(cls)}
    # the short citation is of one of the references
    authors = " ".join(r.authors for r in info.references)
    years = {str(r.year) for r in info.references}
    for who, year in re.findall(r"([A-Z]\w+) (?:et al|and)[^;]*?(\d{4})", cls.citation):
        assert who in authors and year in years, cls.citation
    assert info.formula.count("{") == info.formula.count("}")


def test_the_docs_page_is_what_the_classes_say():
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert page == catalogue.markdown(), "docs/methods.md is out of date: run make docs"
    for _, name in PLUGINS:
        assert f'<a id="{name}"></a>' in page
    assert "NIFTY" in page.split("## Left out", 1)[1] and page.count("```") % 2 == 0
    assert "docs/methods.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_is_supported_is_asked_of_the_code():
    said = {name: dict(describe_method(find("debias.methods", name)).supports) for name in names("debias.methods")}
    # what code refuses, the method's words say
    own_words = {n: describe_method(find("debias.methods", n)).cannot for n in said}
    not_served = {n for n, cannot in own_words.items() if any(c.startswith("serve bipartite graphs") for c in cannot)}
    assert (
        {n for n, s in said.items() if s["Bipartite"].startswith("refused: ")} == set(refused(shop())) == not_served
    ), "a method that refuses bipartite graphs has a paragraph that begins with 'Cannot: serve bipartite graphs'"
    assert {"crosswalk", "fairdrop"} <= not_served
    assert {n for n, s in said.items() if "steps follow" in s["Directed"]} == {"crosswalk", "fairwalk"}
    assert {n for n, s in said.items() if "a penalty" in s["Works through"]} == {
        n for n in said if find("debias.methods", n).uses_lambda
    }
    assert {n for n, s in said.items() if s["Attributes read"] == "none"} == {"none", "cne"}
    assert {n for n, s in said.items() if s["Trains"] == "in a pass of its own"} == {"monet"}
    assert said["uge-ork"]["Steps on a GPU"] == "recorded" and said["cfc"]["Steps on a GPU"] == "as written"


def test_a_table_that_is_overridden_is_filled():
    """What is said of cells without estimating them is what estimating them finds."""
    from uge_core.debias.supports import _toys

    for name in names("debias.methods"):
        method, known = find("debias.methods", name)(), _toys()["people"]
        table = method.cells(known)
        filled = bool((table.weight != 1).any() or (table.offset != 0).any() or table.node_offset is not None)
        assert filled == overridden(method, "cells"), name


def test_words_are_markdown_that_reads_the_same():
    assert catalogue.prose("R~ / R * m_v | <a> `x_1` ``y*z``") == r"R\~ / R \* m\_v \| \<a\> `x_1` `y*z`"


def test_paragraphs_of_a_docstring_have_their_place():
    @dataclass
    class Toy:
        r"""y = x.

        Two lines
        of prose.

            a   display

        Departures: m is exact.

        Cannot: do more.
        """

        name, label, summary, citation, references, formula = "toy", "Toy", "Is a toy.", "us", (), "y = x"

    info = describe(Toy, ())
    assert (
        info.summary == "Is a toy."
        and info.line == "y = x."
        and info.text == ("Two lines of prose.", "    a   display")
    )
    assert info.departures == ("m is exact.",) and info.cannot == ("do more.",)


def test_the_terminal_lists_them(capsys):
    assert run(["methods"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [info.name for info in catalogue.methods()]
    for name in ("crosswalk", "gcn"):
        assert run(["methods", name]) == 0
        out = capsys.readouterr().out
        assert (
            "What it cannot: " in out
            and find("debias.methods" if name == "crosswalk" else "backbones", name).references[0].title in out
        )
    assert run(["methods", "--markdown"]) == 0
    assert capsys.readouterr().out == catalogue.markdown()
    assert run(["methods", "crosswlk"]) == 2
    assert "Did you mean 'crosswalk'?" in capsys.readouterr().err
    assert run(["methods", "cfc", "--markdown"]) == 2
