"""Which module may import which, read from the sources."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "uge_core"

# A room imports only the leaves (files of no room), itself and the rooms named beside it.
MAY = {"kernels": "", "graph": "kernels"}
MAY |= dict.fromkeys(("backbones", "debias", "audit"), "graph kernels") | {"datasets": "graph"}
MAY["training"] = "backbones debias audit graph kernels"
for room, below in zip(
    ["runs", "explore", "views", "dashboard", "cli"],
    ["training datasets", "runs", "explore", "views", "dashboard"],
    strict=True,
):
    MAY[room] = f"{below} {' '.join(MAY[r] for r in below.split())}"
TORCH = {
    "autograd",
    "row_products",
    "backbones",
    "debias",
    "training",
    "cli/bench",
    "pyg_data",
    "torch_tensor",
    "cli/doctor",
    "graph/scores",
}
ONLY = {
    "torch": TORCH,
    "torch_geometric": TORCH,
    "numba": {"kernels"},
    "plotly": {"views/figures", "views/report/document"},
    "streamlit": set(),
}
ONLY["sqlite3"] = {"runs", "dashboard/jobs"}


def modules() -> Iterator[tuple[str, Path]]:
    """(room or leaf, file)."""
    for path in sorted(PACKAGE.rglob("*.py")):
        relative = path.relative_to(PACKAGE)
        yield (relative.parts[0] if len(relative.parts) > 1 else relative.stem), path


@cache
def imports(path: Path) -> frozenset[str]:
    """Dotted names a file imports, wherever in it, those for type checking left out."""
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("room", "path"), list(modules()), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_a_room_imports_what_it_may(room: str, path: Path) -> None:
    below = {i.split(".")[1] for i in imports(path) if i.startswith("uge_core.")} & set(MAY) - {room}
    if path.parent == PACKAGE and room not in ("__init__", "__main__"):
        assert not below, f"{path.name} is a leaf"
    elif room in MAY:
        assert below <= set(MAY[room].split()), path.relative_to(PACKAGE)
    inside = path.relative_to(PACKAGE).with_suffix("").as_posix()
    for library in {i.split(".")[0] for i in imports(path)} & set(ONLY):
        assert any(f"/{p}/" in f"/{inside}/" for p in ONLY[library]), f"{inside} imports {library}"


def test_each_room_is_there() -> None:
    assert {room for room, path in modules() if path.parent != PACKAGE} == set(MAY)


def test_pages_import_the_surface_alone() -> None:
    for path in [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]:
        found = {i for i in imports(path) if i.split(".")[0] not in sys.stdlib_module_names}
        if path.name == "app.py":  # the JSON routes go by Streamlit's sign-in cookie
            found = {"streamlit" if i.startswith("streamlit.") else i for i in found}
        assert found <= {"streamlit", "uge_core"}, path


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["sweep", "--help"], ["runs", "list"]])
def test_light_commands_load_no_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from uge_core.cli.commands import run; run(sys.argv[1:]);"
        "print(sorted({'torch', 'streamlit', 'sklearn', 'plotly'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "UGE_STORE": str(tmp_path)},
    )
    assert done.stderr.splitlines()[-1] == "[]"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, uge_core; print(sorted({'torch', 'streamlit', 'pandas', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_surface_stays_functions_after_submodules_of_the_same_name_are_loaded() -> None:
    import uge_core as uge
    import uge_core.audit
    import uge_core.training.fit

    assert callable(uge.train) and callable(uge.audit)
    assert set(uge.__all__) <= set(dir(uge))
    for name in uge.__all__:
        assert getattr(uge, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = uge.nothing
