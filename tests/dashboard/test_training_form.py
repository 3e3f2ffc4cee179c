"""The form of a graph: every setting has a name that people read, and the declared attributes come first."""

from dataclasses import fields
from pathlib import Path

import pytest

from uge_core.dashboard.training_form import estimate, training_form
from uge_core.registry import find, names
from uge_core.runs.store import RunStore
from uge_core.training.config import RunConfig

PLUGINS = [find(folder, name) for folder in ("backbones", "debias.methods") for name in names(folder)]


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "store")


@pytest.mark.parametrize("owner", [RunConfig, *PLUGINS], ids=lambda c: getattr(c, "name", "") or "training")
def test_each_option_has_a_name_and_words_for_people(owner: type) -> None:
    for option in (f for f in fields(owner) if f.metadata):
        label, choices, words = (option.metadata[k] for k in ("label", "choices", "words"))
        assert label and "_" not in label and label[0].isupper(), option.name
        assert len(words) == len(choices or ()) and len(set(words)) == len(words), option.name
        assert not [w for w in words if "_" in w], option.name


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda c: c.name)
def test_each_method_and_backbone_says_what_it_does_in_a_line(plugin: type) -> None:
    summary = plugin.summary  # type: ignore[attr-defined]
    assert "summary" in vars(plugin) and 20 < len(summary) <= 120 and summary.endswith(".")
    assert not {"fair", "unbiased", "_", "\\"} & set(summary.lower().replace(".", "").split())


@pytest.mark.parametrize("kind", ["people", "people and items"])
def test_no_field_of_the_form_is_called_by_its_name_in_code(kind: str, town: Path, store: RunStore) -> None:
    form = training_form(str(town) if kind == "people" else "sample:titles", store)
    for backbone in form.backbones:
        shown = form.fields(backbone, list(form.methods))
        assert shown and len({f.name for f in shown}) == len(shown)
        for field in shown:
            assert field.label != field.name and "_" not in field.label
            assert all("_" not in field.word(choice) for choice in field.choices)
        items = [f for f in shown if f.name == "item_cells"]
        assert bool(items) is (kind != "people")
        assert all(f.kind == "choice" and f.choices[:2] == ("none", "popularity") for f in items)


def test_a_name_that_means_two_things_says_both(town: Path, store: RunStore) -> None:
    form = training_form(str(town), store)
    (alpha,) = [f for f in form.fields("gcn", ["fairgnn", "crosswalk"]) if f.name == "alpha"]
    assert alpha.label == "Weight of the covariance / Share of steps to other groups"
    assert "covariance weighs" in alpha.help and "share of a node's steps" in alpha.help


@pytest.mark.parametrize(
    ("declared", "first"),
    [("[gender, city]", ("gender", "city")), ("[AGE]", ("age",)), ("[]", ("city",)), (None, ("city",))],
)
def test_declared_attributes_are_the_first_to_treat_in_their_order(
    town: Path, store: RunStore, tmp_path: Path, declared: str | None, first: tuple[str, ...]
) -> None:
    for name in ("edges.csv", "nodes.csv"):
        (tmp_path / name).write_bytes((town / name).read_bytes())
    if declared is not None:
        (tmp_path / "dataset.yaml").write_text(f"edges: edges.csv\nnodes: nodes.csv\nsensitive: {declared}\n")
    assert training_form(str(tmp_path), store).sensitive == first


def test_what_a_choice_would_take_is_said_without_private_words(town: Path, store: RunStore) -> None:
    form = training_form(str(town), store)
    words = estimate(form, form.settings(backbone="node2vec", methods=["uge-w"], sensitive=["city"]), store).words
    assert "copies trained without the people tested" in words and "twin" not in words
