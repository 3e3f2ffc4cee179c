"""The embeddings of a recipe in a plane, as the paper draws them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from uge_core.arrays import IntArray
from uge_core.explore.projection.sample import draw_sample
from uge_core.graph.graph import AttributedGraph
from uge_core.registry import find
from uge_core.runs.audits import Splits
from uge_core.runs.recipe import Recipe
from uge_core.runs.reproduce import Job, check_graph, job_config


@dataclass(frozen=True, eq=False)
class Placed:
    """An embedding in a plane.

    Attributes:
        label: the column's label.
        coordinates: (n, 2) float32.
        codes: (n,) each person's value, an index into `values`; -1: unknown.
        values: names of the attribute's values.
        words: who is drawn.
    """

    label: str
    coordinates: npt.NDArray[np.float32]
    codes: IntArray
    values: tuple[str, ...]
    words: str


def place(
    recipe: Recipe, graph: AttributedGraph, *, people: int = 4_000, device: str = "auto", seed: int = 0
) -> list[Placed]:
    """Trains each column for the recipe's first attribute and seed, and places the same people by t-SNE.

    Args:
        recipe: what to train, with its first backbone.
        graph: the graph it names.
        people: how many are drawn, the same of each column.
        device: "auto", "cpu" or "cuda".
        seed: keys who is drawn, and t-SNE.

    Raises:
        ConfigError: the graph is another one.
    """
    from uge_core.training.fit import fit

    check_graph(recipe, graph)
    attribute, splits = graph.attribute(recipe.attributes[0]), Splits(graph)
    sample = draw_sample(graph, people, seed=seed)
    made = []
    for column in recipe.columns:
        if column.entry is None:
            continue
        treated = () if column.entry.method == "none" else (attribute.name,)
        job = Job(recipe.backbones[0], column, treated, (attribute.name,))
        config = job_config(recipe, graph, treated, job, recipe.seeds[0])
        (fitted,) = fit([config], graph, splits(config), device=device)
        where, _ = find("explore.projection.methods", "t-sne")().place(fitted.embedding[sample.nodes], None, seed=seed)
        made.append(Placed(column.label, where, attribute.codes[sample.nodes], attribute.labels, sample.words))
    return made
