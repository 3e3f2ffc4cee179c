"""From a grid of settings to the runs it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uge_core.errors import ConfigError
from uge_core.graph.graph import AttributedGraph
from uge_core.progress import OnProgress as OnProgress
from uge_core.progress import Progress as Progress
from uge_core.registry import find
from uge_core.training.config import RunConfig, known_settings, split_names

DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Planned:
    """One point of a grid and the id its run has."""

    run_id: str
    config: RunConfig


def plan(
    graph: AttributedGraph,
    *,
    sensitive: str | Sequence[str] = (),
    methods: Sequence[str] = ("none",),
    lams: Sequence[float] = (),
    warm: bool = False,
    seeds: Sequence[int] = (0,),
    split_seeds: Sequence[int] = (0,),
    backbones: Sequence[str] = ("node2vec",),
    options: dict[str, Any] | None = None,
    **settings: Any,
) -> list[Planned]:
    """The runs of a grid, each once.

    Args:
        graph: what is trained on.
        sensitive: text or list; a comma takes each in turn, ``gender+region`` both jointly.
        methods: names of debiasing methods; one that reads no attribute is one run for all of `sensitive`.
        lams: weights of the penalty, for the methods that have one; empty takes each method's default.
        warm: train the middle lambda alone, and the others from its end for `warm_epochs` more.
        seeds: initialisations.
        split_seeds: splits.
        backbones: names of backbones.
        options: further settings; each is given to the backbones and methods that know it.
        **settings: passed on to `RunConfig.resolve`.

    Raises:
        ConfigError: a value that is not allowed, or an empty list.
        GraphError: an attribute the graph does not have.
    """
    for name, given in (("methods", methods), ("seeds", seeds), ("split-seeds", split_seeds), ("backbones", backbones)):
        if not given:
            raise ConfigError(f"{name} is empty; name at least one")
    targets = [t.strip() for t in sensitive.split(",") if t.strip()] if isinstance(sensitive, str) else list(sensitive)
    for target in targets or [""]:
        for lam in lams or (None,):
            # Refused even where the methods would drop it: a misspelt name is a slip of the hand.
            RunConfig.resolve(graph, sensitive=split_names(target), lam=lam)
    if warm and len(set(lams)) < 2:
        raise ConfigError("warm starts need two lambdas or more; name them as 0.1,0.5,1.9")
    warm_from = sorted(set(lams))[len(set(lams)) // 2] if warm else None
    known_somewhere: set[str] = set()
    planned: dict[str, Planned] = {}
    for backbone in backbones:
        for method in methods:
            method_cls = find("debias.methods", method)
            known = known_settings(backbone, method)
            known_somewhere |= known
            alone = len(methods) * len(backbones) == 1
            own = {k: v for k, v in (options or {}).items() if alone or k in known}
            for target in targets or [""] if method_cls.reads_attributes else [""]:
                for lam in lams or (None,) if method_cls.uses_lambda else (None,):
                    for split_seed in split_seeds:
                        for seed in seeds:
                            config = RunConfig.resolve(
                                graph,
                                sensitive=split_names(target),
                                backbone=backbone,
                                method=method,
                                lam=lam,
                                warm_from=warm_from,
                                options=own,
                                seed=seed,
                                split_seed=split_seed,
                                **settings,
                            )
                            run_id = config.run_id(graph.fingerprint)
                            planned.setdefault(run_id, Planned(run_id, config))
    for key in options or {}:
        if key not in known_somewhere:
            raise ConfigError(
                f"--set {key}: no such setting of these backbones and methods; allowed: "
                f"{', '.join(sorted(known_somewhere))}"
            )
    return list(planned.values())
