"""README says what is there: commands, tables, settings."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from uge_core.cli.commands import parser
from uge_core.datasets.layouts import all_layouts
from uge_core.datasets.layouts.pyg_names import KNOWN
from uge_core.registry import find, names

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the first table under a heading, by their first cell."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")]
    return {row[0].strip("`"): row[1:] for row in rows[2:]}


def test_the_first_block_is_the_two_commands() -> None:
    assert BLOCKS[0][1] == "make app\nmake test\n"


def test_ci_runs_the_readmes_test_command() -> None:
    assert (ROOT / ".ci" / "run").read_text().rstrip().splitlines()[-1] == "make test"


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`?make ([a-z-]+)", README)) - {"and"}))
def test_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "line", [line for _, block in BLOCKS for line in block.splitlines() if line.startswith("uge ")]
)
def test_commands_parse(line: str) -> None:
    parser().parse_args(line.split()[1:])


def test_every_command_is_shown() -> None:
    shown = {tuple(line.split()[1:3]) for _, block in BLOCKS for line in block.splitlines() if line.startswith("uge ")}
    for command in ("train", "sweep", "audit", "verify", "bench", "app"):
        assert any(s[0] == command for s in shown), command
    for command in (("data", "inspect"), *(("runs", c) for c in ("list", "show", "export", "delete"))):
        assert command in shown


def test_python_names_exist() -> None:
    import uge_core as uge

    for name in re.findall(r"uge\.(\w+)\(", README):
        assert callable(getattr(uge, name)), name


def test_backbones() -> None:
    rows = table("Backbones")
    assert set(rows) == set(names("backbones"))
    for name, (what, loss) in rows.items():
        plugin = find("backbones", name)
        assert what == f"{plugin.label}, {plugin.citation}" and loss == plugin.loss


def test_methods() -> None:
    rows = table("Methods")
    assert set(rows) == set(names("debias.methods"))
    for name, (what, lam) in rows.items():
        plugin = find("debias.methods", name)
        assert what.startswith(plugin.label)
        assert lam == (f"{plugin.default_lam:g}" if plugin.uses_lambda else "")


def test_attackers() -> None:
    rows = table("Attackers")
    assert set(rows) == set(names("audit.attackers"))
    for name, (what,) in rows.items():
        assert what.startswith(f"{find('audit.attackers', name).label}: ")


def test_layouts() -> None:
    assert {name: row[0] for name, row in table("Data layouts").items()} == {x.name: x.summary for x in all_layouts()}


def test_exit_codes() -> None:
    from uge_core.cli import commands as cli

    codes = {cli.DONE, cli.CHECK_FAILED, cli.USER_ERROR, cli.NOT_ENOUGH_EVIDENCE, cli.INTERRUPTED}
    assert {int(code) for code in table("Exit codes")} == codes


def test_packages_are_listed() -> None:
    import tomllib

    listed = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"])
    found = {".".join(p.parent.relative_to(ROOT).parts) for p in (ROOT / "uge_core").rglob("__init__.py")}
    # the samples lie at the top of the checkout and inside the package once installed
    assert listed == found | {"uge_core.sample_data"}


def test_datasets_of_pygs() -> None:
    section = README.split("### Datasets of PyG's\n", 1)[1].split("```", 1)[0]
    for name, known in KNOWN.items():
        assert re.search(rf"\b{name}[,. ]", section), name
        assert not known.attribute or f"`{known.attribute}`" in section


def test_no_outside_hosts() -> None:
    # datasets that the user asks for by name
    named = {urlsplit(known.url).netloc for known in KNOWN.values()}
    for path in [ROOT / "app.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "uge_core").rglob("*.py")]:
        for scheme, host in re.findall(r"(https?)://([^/\s\"'`)}{]+)", path.read_text(encoding="utf-8")):
            fetched = path.name == "pyg_names.py" and scheme == "https" and host in named
            example = path.name == "download.py" and host == "HOST"
            assert host.startswith("127.0.0.1") or fetched or example, f"{path}: {host}"


def test_every_method_has_a_mark_of_its_own():
    """Colour and symbol tell methods apart, and plotly knows each symbol hollow and with a dot."""
    import plotly.graph_objects as go

    from uge_core.views.figures.tradeoff import _STATUS

    methods = [find("debias.methods", name) for name in names("debias.methods")]
    assert len({(m.color, m.symbol) for m in methods}) == len({m.position for m in methods}) == len(methods)
    for method in methods:
        for status in _STATUS.values():
            go.Scatter(marker={"symbol": method.symbol + status})  # raises for one it does not know
