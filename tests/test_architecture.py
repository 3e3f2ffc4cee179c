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

# A module imports only from earlier lines; modules of one line do not import one another.
LAYERS = (
    ("errors", "aside", "info", "autograd", "environment", "progress", "_kernels", "_prior_kernels", "_score_kernel", "_walk_kernels", "_wave_kernels", "strict_yaml", "spreadsheet", "spawn"),
    ("registry", "memory", "record", "checkpoint", "row_products"),
    ("graph", "catalogue"),
    ("scores", "split", "values", "group_means", "planted", "association", "priors", "walks", "withheld"),
    ("bias_free",),
    ("datasets", "backbones", "penalties", "edge_factors", "heads", "audit", "samples"),
    ("finishes", "learned_ratio"),
    ("debias", "embeddings", "policy"),
    ("edge_loss", "steps"),
    ("losses",),
    ("config",),
    ("evidence",),
    ("watch",),
    ("rates",),
    ("train",),
    ("store",),
    ("views", "uploads"),
    ("projection",),
    ("screens",),
    ("runs",),
    ("external", "comparison", "verify"),
    ("whatif",),
    ("jobs",),
    ("plots", "bench"),
    ("figures",),
    ("report", "purge", "web", "sample_audit"),
    ("doctor", "startup"),
    ("cli",),
    ("__init__", "__main__"),
)  # fmt: skip
FOLDERS = ("audit", "backbones", "datasets", "debias", "penalties")
LEVEL = {name: i for i, layer in enumerate(LAYERS) for name in layer}


def modules() -> Iterator[tuple[str, Path]]:
    """(part of the package, file)."""
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


def parts(path: Path) -> set[str]:
    """The parts of uge_core a file imports."""
    found = {name.split(".")[1] for name in imports(path) if name.startswith("uge_core.")}
    return found & set(LEVEL)


@pytest.mark.parametrize(("part", "path"), list(modules()), ids=lambda v: v.name if isinstance(v, Path) else v)
def test_arrows(part: str, path: Path) -> None:
    assert part in LEVEL, f"{path} has no place in LAYERS"
    for other in parts(path) - {part}:
        assert LEVEL[other] < LEVEL[part], f"{path.relative_to(ROOT)} must not import uge_core.{other}"


def test_plug_in_folders_keep_apart() -> None:
    for part, path in modules():
        if part in FOLDERS:
            others = parts(path) & set(FOLDERS) - {part}
            assert others <= ({"penalties"} if part == "debias" else set()), path


NO_TORCH = "audit datasets embeddings store views screens figures plots environment graph external comparison cli jobs checkpoint uploads projection evidence whatif purge web"


@pytest.mark.parametrize("part", NO_TORCH.split())
def test_no_torch(part: str) -> None:
    for name, path in modules():
        # A .pt file is read by torch alone; these load it when one is read.
        if name == part and path.name not in ("pyg_data.py", "torch_tensor.py"):
            assert not {i.split(".")[0] for i in imports(path)} & {"torch", "torch_geometric"}, path


def test_no_streamlit_in_the_core() -> None:
    for _, path in modules():
        assert "streamlit" not in {i.split(".")[0] for i in imports(path)}, path


def test_pages_import_the_surface_alone() -> None:
    for path in [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]:
        found = {i for i in imports(path) if i.split(".")[0] not in sys.stdlib_module_names}
        if path.name == "app.py":  # the JSON routes go by Streamlit's sign-in cookie
            found = {"streamlit" if i.startswith("streamlit.") else i for i in found}
        assert found <= {"streamlit", "uge_core"}, path


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["sweep", "--help"], ["runs", "list"]])
def test_light_commands_load_no_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        "import sys; from uge_core.cli import run; run(sys.argv[1:]);"
        "print(sorted({'torch', 'streamlit', 'sklearn', 'plotly'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=ROOT,
        env={"PATH": "", "PYTHONPATH": str(ROOT), "UGE_STORE": str(tmp_path)},
    )  # fmt: skip
    assert done.stderr.splitlines()[-1] == "[]"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, uge_core; print(sorted({'torch', 'streamlit', 'pandas', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_surface_stays_functions_after_submodules_of_the_same_name_are_loaded() -> None:
    import uge_core as uge
    import uge_core.audit
    import uge_core.train

    assert callable(uge.train) and callable(uge.audit)
    assert set(uge.__all__) <= set(dir(uge))
    for name in uge.__all__:
        assert getattr(uge, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = uge.nothing
