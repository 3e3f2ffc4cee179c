"""README and docs/ say what is there: commands, tables, settings, pages, links."""

import argparse
import ast
import re
from itertools import combinations
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import written_docs

from uge_core.cli.main import parser
from uge_core.datasets.layouts import all_layouts
from uge_core.datasets.layouts.pyg_names import KNOWN
from uge_core.registry import find, names

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")))
}
WRITTEN_BY_HAND = {name: text for name, text in PAGES.items() if name != "docs/methods.md"}
BLOCKS = [block for text in WRITTEN_BY_HAND.values() for block in re.findall(r"```(\w*)\n(.*?)```", text, re.DOTALL)]
COMMANDS = [line for _, block in BLOCKS for line in block.splitlines() if line.startswith("uge ")]
TARGETS = {target for text in WRITTEN_BY_HAND.values() for target in re.findall(r"(?:`|^)make ([a-z-]+)", text, re.M)}

WRITE_ANEW = "run make docs"


def section(page: str, heading: str) -> str:
    return PAGES[page].split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def table(page: str, heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading, by their first cell."""
    lines = section(page, heading).splitlines()
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {re.sub(r"^\[|\]\(.*\)$|`", "", row[0]): row[1:] for row in rows[2:]}


def test_the_first_block_is_the_two_commands() -> None:
    assert re.findall(r"```\w*\n(.*?)```", README, re.DOTALL)[0] == "make app\nmake test\n"


def test_readme_is_short() -> None:
    assert len(README.splitlines()) < 150


def test_ci_runs_the_readmes_test_command() -> None:
    assert (ROOT / ".ci" / "run").read_text().rstrip().splitlines()[-1] == "make test"


@pytest.mark.parametrize("target", sorted(TARGETS))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_make_target_is_shown() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(phony.split()) == TARGETS


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_parse(line: str) -> None:
    parser().parse_args(line.split()[1:])


def commands(of: argparse.ArgumentParser) -> list[str]:
    (sub,) = (a for a in of._actions if isinstance(a, argparse._SubParsersAction)) if of._subparsers else (None,)
    if sub is None:
        return [of.prog]
    return [name for one in sub.choices.values() for name in commands(one)]


def test_every_command_is_listed() -> None:
    assert sorted(table("docs/cli.md", "Commands")) == sorted(commands(parser()))


def test_every_command_is_shown() -> None:
    shown = {" ".join(line.split()[:n]) for line in COMMANDS for n in (2, 3)}
    started_by_the_dashboard = {"uge worker", "uge whatif-worker"}
    assert set(commands(parser())) - started_by_the_dashboard <= shown


def test_python_names_exist() -> None:
    import uge_core as uge

    called = {name for text in WRITTEN_BY_HAND.values() for name in re.findall(r"\buge\.(\w+)\(", text)}
    assert {"load", "train", "audit", "report", "read_embedding", "compare"} <= called
    for name in called:
        assert callable(getattr(uge, name)), name


def test_pages_are_listed() -> None:
    tree = ast.parse((ROOT / "pages" / "main.py").read_text(encoding="utf-8"))
    titles = {
        keyword.value.value
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "st.Page"
        for keyword in call.keywords
        if keyword.arg == "title"
    }
    assert titles and set(table("README.md", "The pages of the dashboard")) == titles


def test_pages_of_documentation_are_listed() -> None:
    listed = set(table("README.md", "Documentation"))
    assert listed == set(PAGES) - {"README.md"}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", PAGES[page], flags=re.DOTALL)):
        where, _, anchor = target.partition("#")
        if urlsplit(target).scheme:
            continue
        path = (ROOT / page).parent / where if where else ROOT / page
        assert path.exists(), target
        if anchor:
            text = path.read_text(encoding="utf-8")
            heads = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}
            assert anchor in heads | set(re.findall(r'<a id="([^"]+)">', text)), target


def defined(statement: ast.stmt) -> list[str]:
    """The names that a function, a class or an assignment defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = [statement.target] if isinstance(statement, ast.AnnAssign) else getattr(statement, "targets", [])
    return [target.id for target in targets if isinstance(target, ast.Name)]


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_named_code_is_there(page: str) -> None:
    """Paths are of the checkout or of uge_core.

    What follows two colons is defined at the top of the file, or in its class.
    """
    named = re.findall(r"`([\w/.]+\.py)(?:::([\w.]+))?`", PAGES[page])
    assert named
    for file, name in named:
        if re.search("[A-Z]{3}", file):  # NAME.py, which the reader writes
            continue
        path = next((p for p in (ROOT / file, ROOT / "uge_core" / file) if p.exists()), None)
        assert path, file
        body: list[ast.stmt] = ast.parse(path.read_text(encoding="utf-8")).body if name else []
        for part in name.split(".") if name else ():
            here = [n for n in body if part in defined(n)]
            assert here, f"{file}::{name}"
            body = getattr(here[0], "body", [])


@pytest.mark.parametrize("path", written_docs.written(), ids=lambda path: path.name)
def test_what_follows_from_the_code_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == written_docs.written()[path], f"{path.name} is out of date: {WRITE_ANEW}"


def test_backbones() -> None:
    rows = table("docs/training.md", "Backbones")
    assert set(rows) == set(names("backbones")), WRITE_ANEW
    for name, row in rows.items():
        plugin = find("backbones", name)
        assert row == [plugin.label, plugin.citation, plugin.loss], WRITE_ANEW


def test_methods() -> None:
    rows = table("docs/training.md", "Methods")
    assert set(rows) == set(names("debias.methods")), WRITE_ANEW
    for name, (label, what, lam) in rows.items():
        plugin = find("debias.methods", name)
        assert label == plugin.label, WRITE_ANEW
        assert len(what.split()) > 5, f"{name}: a method's file begins with its label, a colon, what it does"
        assert lam == (f"{plugin.default_lam:g}" if plugin.uses_lambda else ""), WRITE_ANEW


def test_attackers() -> None:
    from uge_core.audit.leakage import DEFAULT_ATTACKERS

    rows = table("docs/training.md", "Attackers")
    assert set(rows) == set(names("audit.attackers")), WRITE_ANEW
    for name, (label, how) in rows.items():
        assert label == find("audit.attackers", name).label, WRITE_ANEW
        assert len(how.split()) > 5, f"{name}: an attacker's docstring begins with how it works"
    *first, last = (f"`{name}`" for name in DEFAULT_ATTACKERS)
    listed = f"{', '.join(first)} and {last}"
    assert f"Training audits with {listed}." in section("docs/training.md", "Attackers")


def test_layouts() -> None:
    listed = {name: row[0] for name, row in table("docs/data.md", "Data layouts").items()}
    assert listed == {x.name: x.summary for x in all_layouts()}, WRITE_ANEW


def test_exit_codes() -> None:
    from uge_core.cli import arguments as cli

    codes = {cli.DONE, cli.CHECK_FAILED, cli.USER_ERROR, cli.NOT_ENOUGH_EVIDENCE, cli.INTERRUPTED}
    assert {int(code) for code in table("docs/cli.md", "Exit codes")} == codes


def test_packages_are_listed() -> None:
    import tomllib

    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "uge_core").rglob("__init__.py")}
    # the dashboard and the samples lie at the top of the checkout and inside the package once installed
    assert listed == found | {"uge_core.app", "uge_core.app.pages", "uge_core.sample_data"}


def test_datasets_of_pygs() -> None:
    text = section("docs/data.md", "Datasets of PyG's")
    for name, known in KNOWN.items():
        assert re.search(rf"\b{name}[,. ]", text), name
        assert not known.attribute or f"`{known.attribute}`" in text


def test_no_outside_hosts() -> None:
    # datasets that the user asks for by name
    named = {urlsplit(known.url).netloc for known in KNOWN.values()}
    for path in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "uge_core").rglob("*.py")]:
        for scheme, host in re.findall(r"(https?)://([^/\s\"'`)}{]+)", path.read_text(encoding="utf-8")):
            fetched = path.name == "pyg_names.py" and scheme == "https" and host in named
            example = path.name == "download.py" and host == "HOST"
            # names of XML namespaces, which nothing is fetched from
            space = path.name == "graph_xml.py" and host in ("graphml.graphdrawing.org", "www.gexf.net")
            assert host.startswith("127.0.0.1") or fetched or example or space, f"{path}: {host}"


def test_every_method_has_a_mark_of_its_own():
    """Colour and symbol tell methods apart, and plotly knows each symbol hollow and with a dot."""
    import plotly.graph_objects as go

    from uge_core.views.figures.tradeoff import _STATUS

    methods = [find("debias.methods", name) for name in names("debias.methods")]
    for one, other in combinations(methods, 2):
        both = f"of {one.name} and of {other.name}"
        assert (one.color, one.symbol) != (other.color, other.symbol), f"color and symbol {both} are alike"
        assert one.position != other.position, f"position {both} is {one.position}"
    for method in methods:
        for status in _STATUS.values():
            go.Scatter(marker={"symbol": method.symbol + status})  # raises for one it does not know
