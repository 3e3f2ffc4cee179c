"""Logged losses: which epochs, when a device is asked for its numbers, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from toys import config, town

from uge_core.errors import TrainingDiverged
from uge_core.graph.split import split_links
from uge_core.training.loss_history import LossHistory
from uge_core.training.members import MemberBuilder, build_backbone

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def history(device, last=137):
    graph = town()
    configs = [config(graph, "uge-r", lam=2.0), config(graph, "none", seed=1)]
    build = MemberBuilder(graph, split_links(graph), build_backbone(configs[0]), None)
    return LossHistory([build.member(c, twin=False, position=k) for k, c in enumerate(configs)], 1, last, device)


def note_all(losses, last=137):
    read = []
    for epoch in range(1, last + 1):
        if losses.wants(epoch):
            losses.note(epoch, torch.tensor([1.0, 3.0]) * epoch, torch.tensor([0.5, 7.0]))
        read.append(len(losses.columns["epoch"]))
    return read


def test_the_first_the_last_and_each_tenth_epoch_are_logged_with_lambda_in_the_total():
    losses = history(CPU)
    read = note_all(losses)
    assert losses.of(0)["epoch"] == [1, *range(10, 131, 10), 137] and read[:11] == [1] * 9 + [2, 2]
    assert losses.of(0)["edge_loss"][1] == 10.0 and losses.of(1)["edge_loss"][1] == 30.0
    assert losses.of(0)["total"][1] == 11.0 and losses.of(1)["total"][1] == 30.0
    assert losses.latest == (137.0 + 1.0 + 3 * 137.0) / 2


def test_a_gpu_is_asked_for_ten_logged_epochs_at_once_and_says_the_same():
    late, prompt = history(GPU), history(CPU)
    read, _ = note_all(late), note_all(prompt)
    assert read[0] == 1 and read[98] == 1 and read[99] == 11 and read[135] == 11 and read[136] == 15
    assert late.columns == prompt.columns and late.latest == prompt.latest


def test_what_is_held_back_can_be_read_before():
    losses = history(GPU)
    losses.note(10, torch.tensor([1.0, 3.0]), torch.zeros(2))
    assert math.isnan(losses.latest)
    losses.read()
    losses.read()
    assert losses.latest == 2.0 and losses.columns["epoch"] == [10]


def test_a_member_that_diverged_is_named_with_its_position():
    losses = history(CPU)
    with pytest.raises(TrainingDiverged, match=r"loss is not finite at epoch 10 of none seed=1;") as refused:
        losses.note(10, torch.tensor([1.0, math.inf]), torch.zeros(2))
    assert refused.value.members == (1,)
    assert losses.columns["epoch"] == []
