"""`uge doctor`: what is there is found, what is missing is said with what to do."""

import json
import socket
from pathlib import Path

import pytest

import uge_core as uge
from uge_core import machine
from uge_core.cli import doctor
from uge_core.cli import main as cli


def verdicts(store: uge.RunStore, **options: int) -> dict[str, doctor.Check]:
    return {check.name: check for check in doctor.examine(store, **options)}


@pytest.mark.slow
def test_this_machine_is_fit(seeded: Path) -> None:
    found = verdicts(uge.RunStore(seeded))
    assert found["compiled kernels"].verdict == found["torch"].verdict == "ok"
    assert found["store"].found.startswith("4 runs in")
    assert all(check.remedy for check in found.values() if check.verdict == "problem")


def test_looking_makes_no_store(tmp_path: Path) -> None:
    assert verdicts(uge.RunStore(tmp_path / "none"))["store"].verdict == "ok"
    assert not (tmp_path / "none").exists()


def test_a_store_that_others_may_read_and_a_damaged_run(store_copy: Path) -> None:
    store = uge.RunStore(store_copy)
    with store.writing() as db:
        db.execute("UPDATE runs SET config = 'x' WHERE id = ?", (store.list()[0].id,))
    store_copy.chmod(0o755)
    found = verdicts(store)
    assert found["store"].verdict == "problem" and "damaged" in found["store"].found
    assert "chmod 700" in found["store's privacy"].remedy


def test_a_store_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database")
    assert verdicts(uge.RunStore(tmp_path))["store"].verdict == "problem"


def test_a_taken_port_names_another(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check = verdicts(uge.RunStore(tmp_path / "s"), port=port)["port"]
    assert check.verdict == "note" and check.remedy == f"uge app --port {port + 1}"


def test_an_old_and_a_missing_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = machine.version
    asked = {"umap-learn": None, "plotly": "5.24.1"}
    monkeypatch.setattr(doctor, "version", lambda name: asked.get(name, real(name)))
    found = verdicts(uge.RunStore(tmp_path / "s"))
    assert found["umap-learn"].found == "not installed" and "pip install" in found["umap-learn"].remedy
    assert found["plotly"].verdict == "problem" and "too old" in found["plotly"].found


def test_a_network_disk_is_known_by_its_mount(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = f"/dev/sda / ext4 rw 0 0\nhost:/x {tmp_path} nfs4 rw 0 0\n"
    monkeypatch.setattr(Path, "read_text", lambda self, **_: mounts)
    assert doctor._network_disk(tmp_path / "store") == "nfs4" and doctor._network_disk(Path("/")) is None


def test_an_open_address_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "0.0.0.0")
    assert verdicts(uge.RunStore(tmp_path / "s"))["address"].verdict == "problem"


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database")
    assert cli.run(["doctor", "--json", "--store", str(tmp_path)]) == 1
    found = {check["name"]: check for check in json.loads(capsys.readouterr().out)}
    assert found["store"]["verdict"] == "problem" and found["store"]["remedy"] == ""
    assert cli.run(["doctor", "--store", str(tmp_path / "none")]) == 0
    assert "torch-geometric" in capsys.readouterr().out


def test_a_port_that_is_none_is_said() -> None:
    (found,) = [c for c in doctor._listening(70000) if c.name == "port"]
    assert found.verdict == "problem" and "65535" in found.found
