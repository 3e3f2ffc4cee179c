"""What an installed wheel holds beside the code: the samples, and the dashboard."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel is installed; the checkout is left without a build folder."""
    made = tmp_path_factory.mktemp("wheel")
    unneeded = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", "build", "*.egg-info", "__pycache__", "uge-store", "tests"
    )
    shutil.copytree(ROOT, made / "source", ignore=unneeded)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = ["wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", str(made), str(made / "source")]
    built = subprocess.run([*pip, *build], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = made.glob("*.whl")
    install = ["install", "--no-index", "--no-deps", "--target", str(made / "site"), str(wheel)]
    subprocess.run([*pip, *install], capture_output=True, check=True)
    return made / "site"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder with an app and modules of somebody else's."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in ("app.py", "numpy.py", "streamlit.py"):
        (folder / name).write_text("raise SystemExit('not ours')\n", encoding="utf-8")
    return folder


def environment(site: Path, **more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(site)} | more


def test_the_samples_are_installed(installed: Path, tmp_path: Path) -> None:
    code = (
        "from uge_core.datasets import load; from uge_core.datasets.layouts.sample import folder;"
        "print(folder('town'), load('sample:titles').num_edges)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(installed / "uge_core" / "sample_data" / "town"))


def test_the_dashboard_is_installed_as_it_is_in_the_checkout(installed: Path) -> None:
    app = installed / "uge_core" / "app"
    files = {path.relative_to(app) for path in app.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    pages = {path.relative_to(ROOT) for path in (ROOT / "pages").glob("*.py")}
    assert files == pages | {Path("app.py"), Path(".streamlit", "config.toml")}
    for file in files:
        assert (app / file).read_bytes() == (ROOT / file).read_bytes(), file


def test_the_installed_dashboard_answers_in_any_folder(installed: Path, elsewhere: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def fetched(path: str) -> bytes:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=30) as answer:
            assert answer.status == 200
            body: bytes = answer.read()
            return body

    process = subprocess.Popen(
        [sys.executable, str(installed / "bin" / "uge"), "app", "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=elsewhere,
        start_new_session=True,
        env=environment(installed, STREAMLIT_SERVER_HEADLESS="true"),
    )
    try:
        for _ in range(240):
            try:
                fetched("_stcore/health")
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.25)
        else:
            pytest.fail("the dashboard did not answer within a minute")
        assert b"<title>Streamlit</title>" in fetched("leakage")
        # app.py of the wheel has added our routes, and the store is where the command was typed.
        assert json.loads(fetched("api/runs")) == {"runs": []}
        # The wheel's config.toml is heard: nothing but 127.0.0.1 is listened to.
        with socket.socket() as other:
            assert other.connect_ex(("127.0.0.2", port)) != 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_the_installed_pages_run(installed: Path, elsewhere: Path) -> None:
    code = (
        "import sys; from streamlit.testing.v1 import AppTest; import uge_core;"
        "app = AppTest.from_file(sys.argv[1], default_timeout=120).run();"
        "print(uge_core.__file__, [t.value for t in app.title], list(app.exception), sep='\\n')"
    )
    main = installed / "uge_core" / "app" / "pages" / "main.py"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, str(main)],
        cwd=elsewhere,
        env=environment(installed, UGE_STORE=str(elsewhere / "store")),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [str(installed / "uge_core" / "__init__.py"), "['UGE audit']", "[]"]


def test_a_package_without_its_dashboard_says_so(installed: Path, tmp_path: Path) -> None:
    shutil.copytree(installed / "uge_core", tmp_path / "uge_core", ignore=shutil.ignore_patterns("app"))
    done = subprocess.run(
        [sys.executable, "-m", "uge_core", "app"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "the dashboard is missing" in done.stderr and done.stderr.count("\n") == 1
