"""The sample audit: what a first start finds, put there whole and once, and what it is made of."""

import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import uge_core as uge
import uge_core.dashboard as ui
from uge_core.cli import main as cli
from uge_core.errors import StoreError
from uge_core.runs import sample_audit
from uge_core.runs.sample_audit import LAMBDAS, SEEDS, first_start

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> uge.RunStore:
    """A store that was started for the first time."""
    found = uge.RunStore(tmp_path_factory.mktemp("first") / "store")
    assert first_start(found)
    return found


def test_the_runs_are_there_with_their_audits_and_say_where_they_are_from(store: uge.RunStore) -> None:
    runs = store.list()
    path = {(r.config["lambda"], r.config["seed"]) for r in runs if r.config["method"] == "uge-c"}
    assert path == {(lam, seed) for lam in LAMBDAS for seed in SEEDS}
    assert {r.config["method"] for r in runs} == {"none", "uge-c", "uge-o", "uge-ok", "uge-ork"}
    town = uge.load("sample:town")
    for run in runs:
        assert run.audited and run.audit is not None and run.dataset["shipped"]
        assert run.dataset["fingerprint"] == town.fingerprint  # the town of this version is the one they are about
        run.check()
        assert np.isfinite(run.embedding).all() and run.environment["device"]
    assert sum(bool(r.parameters) for r in runs) == 1
    (whole,) = (r for r in runs if r.parameters)  # what the first page has as run A can be encoded again
    assert (whole.config["method"], whole.config["seed"]) == ("none", 0)
    assert store.root.stat().st_mode & 0o077 == 0


def test_the_methods_point_is_seen(store: uge.RunStore) -> None:
    """What treatment takes from leakage it gives to the bias-free graph, above what popularity gives."""

    def mean(method: str, lam: float | None, metric: str, **about: object) -> float:
        rows = [
            row
            for run in store.list()
            if (run.config["method"], run.config["lambda"]) == (method, lam)
            for row in run.rows
            if row["metric"] == metric and all(row[k] == v for k, v in about.items())
        ]
        assert len(rows) == len(SEEDS) and all(row["value"] is not None for row in rows)
        return float(np.mean([row["value"] for row in rows]))

    kinds = {(r.config["method"], r.config["lambda"]) for r in store.list()}
    for run in store.list():
        assert all(row["value"] == 1.0 for row in run.rows if row["metric"] == "usable")
    for method, lam in kinds:
        exposure = None if method == "none" else "unseen"
        for metric, about in (
            ("ndcg_at_10", {"variant": "planted-truth"}),
            ("ndcg_at_10_matched", {"variant": "held-out", "attribute": "region"}),
        ):
            given = about | {"exposure": exposure}
            rows = [
                r
                for run in store.list()
                if run.config["method"] == method
                for r in run.rows
                if r["metric"] == metric and all(r[k] == v for k, v in given.items())
            ]
            assert all(r["value"] > r["floor_degree"] for r in rows), (method, lam, metric)
    truth = {"variant": "planted-truth"}
    leak = {"attribute": "region", "attacker": "worst"}
    plain = mean("none", None, "ndcg_at_10", exposure=None, **truth)
    read = mean("none", None, "auc", exposure=None, **leak)
    for method, lam in kinds - {("none", None)}:
        assert mean(method, lam, "ndcg_at_10", exposure="unseen", **truth) > plain + 0.05
        assert mean(method, lam, "auc", exposure="unseen", **leak) < read - 0.1


def test_its_file_is_a_few_megabytes() -> None:
    (place,) = [p / sample_audit.FILE for p in sample_audit.PLACES if (p / sample_audit.FILE).exists()]
    assert place.stat().st_size <= 4_000_000


@pytest.mark.processors
@pytest.mark.slow
def test_an_audit_measured_anew_is_the_one_that_was_shipped(store: uge.RunStore, tmp_path: Path) -> None:
    """Of an untreated run: what is in the file is what this version measures."""
    run = next(r for r in store.list() if r.config["method"] == "none" and r.config["seed"] == 0)
    report = tmp_path / "report.json"
    report.write_text(json.dumps(run.audit))
    assert cli.run(["verify", str(report), "--store", str(store.root)]) == 0


def test_a_store_that_is_there_is_left_alone(tmp_path: Path) -> None:
    with uge.RunStore(tmp_path / "mine").writing():
        pass
    assert not first_start(uge.RunStore(tmp_path / "mine")) and not uge.RunStore(tmp_path / "mine").list()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    assert not first_start(uge.RunStore(tmp_path / "other"))
    (tmp_path / "empty").mkdir()
    assert first_start(uge.RunStore(tmp_path / "empty"))


@pytest.mark.slow
def test_many_first_starts_at_once_make_one_store(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda _: first_start(uge.RunStore(tmp_path / "store")), range(4)))
    assert sum(made) == 1 and len(uge.RunStore(tmp_path / "store").list()) == len(LAMBDAS) * 3 + 12
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_what_is_removed_does_not_come_back(tmp_path: Path) -> None:
    store = uge.RunStore(tmp_path / "store")
    first_start(store)
    for run in store.list(audits=False):
        store.delete(run.id)
    assert not first_start(store) and not store.list()


def test_another_file_in_its_place_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / sample_audit.FILE, "w") as packed:
        packed.writestr("../out.txt", "x")
    monkeypatch.setattr(sample_audit, "PLACES", (tmp_path,))
    with pytest.raises(StoreError, match="install it again"):
        first_start(uge.RunStore(tmp_path / "store"))
    assert not (tmp_path / "store").exists() and not (tmp_path.parent / "out.txt").exists()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="name another with --store"):
        first_start(uge.RunStore(tmp_path / "file" / "store"))


@pytest.mark.slow
def test_the_overview_begins_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    app = AppTest.from_file(str(ROOT / "pages" / "main.py"), default_timeout=60).run()
    assert not app.exception and "This is the sample audit" in app.info[0].value
    assert any(b.label.startswith("Take the tour") for b in app.button) and len(app.dataframe[0].value)
    assert len([h for h in app.get("html") if "uge-gauge" in h.proto.body]) == 5


def test_the_dashboards_start_makes_it_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "store"))
    ui.warm_up()
    ui.warm_up(later=True)
    assert len(uge.RunStore().list()) == len(LAMBDAS) * 3 + 12
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UGE_STORE", str(tmp_path / "file" / "store"))
    ui.warm_up()  # the first page says what is wrong


def test_vectors_come_back_to_the_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(5, 4)).astype(np.float32)
    held = {"a/embedding.npy": whole, "a/twin.npy": whole.astype(np.float16).astype(np.float32)}
    for name, vectors in held.items():
        path = tmp_path / "made" / "runs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, vectors)
    (tmp_path / "made" / "store.sqlite").write_bytes(b"list")
    sample_audit._pack(tmp_path / "made", tmp_path / "made.zip")
    sample_audit._unpack(tmp_path / "made.zip", tmp_path / "there")
    assert (tmp_path / "there" / "store.sqlite").read_bytes() == b"list"
    for name in held:
        assert (tmp_path / "there" / "runs" / name).read_bytes() == (tmp_path / "made" / "runs" / name).read_bytes()
    with zipfile.ZipFile(tmp_path / "made.zip") as packed:
        sizes = {info.filename: info.file_size for info in packed.infolist()}
    assert (
        sizes["runs/a/embedding.npy"] - sizes["runs/a/twin.npy"] == whole.size * 2
    )  # half precision where nothing is lost


def test_rounding_is_relative_to_each_number_and_fits_half_precision() -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32) * np.float32([1e-3, 1.0] * 8)
    rounded = sample_audit._rounded(vectors)
    assert (rounded.astype(np.float16) == rounded).all()
    assert np.abs(rounded / vectors - 1).max() <= 1 / 64 + 1e-3
