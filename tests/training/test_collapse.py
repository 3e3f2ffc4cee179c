"""A training that ended with nothing learnt says so, with the setting to change; one that learnt does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from toys import BACKBONES, config, run, shop, town

import uge_core as uge
from uge_core.cli import main as cli
from uge_core.graph.split import split_links
from uge_core.training.collapse import ALIKE, collapse_advice, spread
from uge_core.training.members import lone_member

HEAVY = {"weight_decay": 1.0}


def collapsed(fitted):
    return [text for text in fitted.diagnostics["advice"] if "has collapsed" in text]


@pytest.fixture(scope="module")
def member():
    graph = town()
    return lone_member(config(graph, "uge-w", "gcn"), graph, split_links(graph))


def test_weight_decay_that_pulls_all_vectors_to_0_is_told():
    graph = town()
    fitted = run(graph, config(graph, "none", "gcn", epochs=60, options=HEAVY))[0]
    assert np.abs(fitted.embedding).max() < 0.01  # it has, whatever is said of it
    (text,) = collapsed(fitted)
    assert text.startswith("none seed=0 has collapsed") and "use --set weight_decay=0.1;" in text
    assert "learning_rate" in text and "lambda" not in text


def test_the_twin_is_told_of_too():
    graph = town()
    fitted = run(graph, config(graph, "uge-c", "gcn", lam=0.5, epochs=60, options=HEAVY))[0]
    run_itself, twin = collapsed(fitted)
    assert " seed=0 has" in run_itself and " seed=0 twin has" in twin and "use a lambda below 0.5" in twin


def test_causes_are_those_that_the_run_has():
    graph = town()
    regularised = lone_member(config(graph, "uge-r", "node2vec", lam=30.0), graph, split_links(graph))
    (text,) = collapse_advice(regularised, np.zeros((graph.num_nodes, 16), np.float32))
    assert "use a lambda below 30 " in text and "weight_decay" not in text  # tables have none


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("make", [town, shop])
def test_nothing_is_said_of_a_training_however_short(backbone, make):
    graph = make()
    assert not collapsed(run(graph, config(graph, "uge-w", backbone, epochs=1))[0])


def test_what_counts_is_whether_scores_differ(member):
    z = np.random.default_rng(0).normal(size=(member.inputs.graph.num_nodes, 16)).astype(np.float32)
    assert spread(member, z) > 1 and not list(collapse_advice(member, z))
    same = np.tile(z[:1], (len(z), 1))  # equal vectors, however long: one score for all, far from 0
    assert same[0] @ same[0] > 1 and spread(member, same) <= ALIKE
    assert spread(member, z * np.float32(1e-3)) <= ALIKE
    by_distance = replace(member.config, method="cne", method_options={})  # equal vectors score far from 0
    far = replace(member, config=by_distance)
    assert spread(far, same) <= ALIKE < spread(far, z)


def test_it_is_printed_and_stored(tmp_path, capsys):
    command = "train sample:town --sensitive region --backbone gcn --epochs 25 --exposure seen"
    asked = [*command.split(), "--set", "weight_decay=1", "--store", str(tmp_path)]
    cli.run(asked)
    assert "has collapsed" in capsys.readouterr().err
    (stored,) = uge.RunStore(tmp_path).list()
    assert any("has collapsed" in text for text in stored.diagnostics["advice"])
