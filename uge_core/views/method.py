"""What each number means, how it is computed, and what it does not say. One place for every page."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from uge_core import registry
from uge_core.audit.metrics import METRICS
from uge_core.machine import stamp
from uge_core.plugin import Info
from uge_core.views import catalogue


@dataclass(frozen=True)
class MetricHelp:
    """A metric for people who never met it.

    Attributes:
        name: as in a row.
        label: as on screen.
        direction: "lower" or "higher" is better.
        source: where the formula comes from.
        sentence: what it says, in one sentence.
        formula: LaTeX.
        limits: what it does not say.
    """

    name: str
    label: str
    direction: str
    source: str
    sentence: str
    formula: str
    limits: str


@dataclass(frozen=True)
class PluginHelp:
    """A method, a backbone or an attacker.

    Attributes:
        name: as it is typed.
        label: as on screen.
        source: where it comes from, in short; of an attacker "".
        formula: LaTeX; of an attacker "".
        text: Markdown, all that is known of it.
        look: of a method, its mark on every chart; else "".
    """

    name: str
    label: str
    source: str
    formula: str
    text: str
    look: str = ""


@dataclass(frozen=True)
class MethodPage:
    """The Method page.

    Attributes:
        metrics: every metric of an audit.
        which: which method for whom, in Markdown.
        methods: every debiasing method, the paper's first.
        left_out: label, LaTeX and Markdown of each method that is not here, and why.
        overview: what each method works through and serves, a row a method.
        attackers: every attacker.
        backbones: every backbone.
        glossary: term to meaning.
        keys: keys to what they do.
        versions: package to version.
    """

    metrics: tuple[MetricHelp, ...]
    which: str
    methods: tuple[PluginHelp, ...]
    left_out: tuple[tuple[str, str, str], ...]
    overview: tuple[Mapping[str, str], ...]
    attackers: tuple[PluginHelp, ...]
    backbones: tuple[PluginHelp, ...]
    glossary: Mapping[str, str]
    keys: Mapping[str, str]
    versions: Mapping[str, str]


_GLOSSARY = {
    "Attribute": "Something about people, such as region or gender, that the embedding was never meant to carry.",
    "Backbone": "The model that turns the graph into embeddings.",
    "Before and after": "The two runs that pages compare, chosen in the sidebar and kept in the address.",
    "Degree alone": "A floor of link quality and gaps: each node's number of training links as its whole embedding. "
    "An embedding that ranks no better than it has learned nothing beyond who is popular.",
    "Embedding": "A short vector for each node; whoever gets the vectors can run attackers on them.",
    "Exposure": "Seen: training may have read the tested people's values. Unseen: a twin of the run was trained "
    "without them, and it is measured.",
    "Floor": "What guessing would give: always the commonest value (majority), or the same attacker on random "
    "embeddings (random).",
    "Interval": "95 %, over the people tested for one seed, or Student's t over several training seeds. The caption "
    "of each chart says which.",
    "Lambda (λ)": "How much a method's penalty counts beside the link loss.",
    "Matched NDCG@10": "Link quality among strangers of the friend's own group, where knowing the attribute gains "
    "nothing. The usual NDCG@10 also pays for reading it.",
    "Not enough evidence": "Too few people, pairs or links to say anything. Never shown as zero.",
    "Pareto front": "The points that no other point beats on both axes.",
    "Tied": "Another point is better on both axes, but not by more than the intervals.",
    "Usable": "An embedding whose vectors and scores differ and which ranks links above chance. One that is not leaks "
    "nothing and treats all alike, so it is in no comparison.",
    "Worst attacker": "Whichever of the attackers that see vectors and labels alone reads most; its numbers lead. Two "
    "runs are compared where it was chosen among the same attackers.",
}

_KEYS = {
    "Tab, Shift + Tab": "to the next or the previous control",
    "Left, Right": "move the λ slider to the next trained value; move between the choices of a row of buttons",
    "Home, End": "the smallest or the largest trained λ",
    "Enter, Space": "press a button, open a table or a list",
    "Up, Down, Enter": "choose in an open list; typing narrows it",
    "R": "run the page again",
}


def metric_help(name: str) -> MetricHelp:
    """A metric's sentence, formula and limits."""
    m = METRICS[name]
    return MetricHelp(name, m.label, m.direction, m.source, m.sentence, m.formula, m.limits)


def method_page() -> MethodPage:
    """Definitions from the audit's metrics and the registries."""
    methods = catalogue.methods()
    attackers = [registry.find("audit.attackers", name) for name in registry.names("audit.attackers")]
    made = stamp()
    versions = {"uge-core": made["uge_core"], "python": made["python"], **made["packages"], "commit": made["commit"]}
    return MethodPage(
        tuple(metric_help(name) for name in METRICS),
        catalogue.WHICH,
        tuple(_plugin(info, _look(info.name)) for info in methods),
        tuple((x.label, x.formula, catalogue.prose(f"{x.reason}\n\n{x.reference}")) for x in catalogue.LEFT_OUT),
        tuple({"Method": info.label} | dict(info.supports) for info in methods),
        tuple(
            PluginHelp(a.name, a.label, "", "", catalogue.prose(inspect.cleandoc(a.__doc__ or ""))) for a in attackers
        ),
        tuple(_plugin(info) for info in catalogue.backbones()),
        _GLOSSARY,
        _KEYS,
        {name: str(version or "not installed") for name, version in versions.items() if version or name != "commit"},
    )


def _plugin(info: Info, look: str = "") -> PluginHelp:
    return PluginHelp(info.name, info.label, info.citation, info.formula, catalogue.body(info), look)


def _look(name: str) -> str:
    method = registry.find("debias.methods", name)
    return f"{method.symbol} in {method.color} on every chart"
