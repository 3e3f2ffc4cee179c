"""Which module may import which, read from the sources."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import uge_core
import uge_core.dashboard

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "uge_core"

# A room imports only the leaves (files of no room), itself and the rooms named beside it.
BELOW = "training backbones debias audit datasets graph kernels"
MAY = {
    "kernels": "",
    "graph": "kernels",
    "datasets": "graph",
    "backbones": "graph kernels",
    "debias": "graph kernels",
    "audit": "graph kernels",
    "training": "backbones debias audit graph kernels",
    "runs": BELOW,
    "explore": f"runs {BELOW}",
    "views": f"explore runs {BELOW}",
    "dashboard": f"views explore runs {BELOW}",
    "cli": f"dashboard views explore runs {BELOW}",
}
TORCH = {
    "adam",
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
    "numba": {"kernels", "cli/doctor"},
    "plotly": {"views/figures"},
    "streamlit": set(),
    "sqlite3": {"runs"},
    "ray": {"runs/on_ray"},
}


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


def test_pages_import_the_dashboards_names_alone() -> None:
    named = set()
    for path in [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]:
        outside = {i for i in imports(path) if i.split(".")[0] not in sys.stdlib_module_names}
        if path.name == "app.py":  # the JSON routes go by Streamlit's sign-in cookie
            outside = {"streamlit" if i.startswith("streamlit.") else i for i in outside}
        assert outside <= {"streamlit", "uge_core.dashboard"}, path
        named |= set(re.findall(r"\bui\.([A-Za-z_]\w*)", path.read_text(encoding="utf-8")))
    assert named == set(uge_core.dashboard.__all__)


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["sweep", "--help"], ["runs", "list"]])
def test_light_commands_load_no_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from uge_core.cli.main import run; run(sys.argv[1:]);"
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
    code = (
        "import sys, uge_core, uge_core.dashboard; print(sorted({'torch', 'streamlit', 'pandas', 'numpy'} & "
        "set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("face", [uge_core, uge_core.dashboard], ids=["core", "dashboard"])
def test_names_stay_what_they_are_after_submodules_of_the_same_name_are_loaded(face: ModuleType) -> None:
    for module in ("audit", "dashboard.lambda_offer", "dashboard.training_form", "training.fit"):
        importlib.import_module(f"uge_core.{module}")
    assert face.__all__ and set(face.__all__) <= set(dir(face))
    for name in face.__all__:
        assert getattr(face, name) is not None and not isinstance(getattr(face, name), ModuleType)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = face.nothing
