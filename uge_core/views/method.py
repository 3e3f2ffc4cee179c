"""What each number means, how it is computed, and what it does not say. One place for every page."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass

from uge_core import registry
from uge_core.audit.base import METRICS
from uge_core.audit.parity import MIN_EDGES, MIN_PAIRS
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
    methods: tuple[PluginHelp, ...]
    left_out: tuple[tuple[str, str, str], ...]
    overview: tuple[Mapping[str, str], ...]
    attackers: tuple[PluginHelp, ...]
    backbones: tuple[PluginHelp, ...]
    glossary: Mapping[str, str]
    keys: Mapping[str, str]
    versions: Mapping[str, str]


# name: (what it says, formula, what it does not say)
_WORDS: Mapping[str, tuple[str, str, str]] = {
    "micro_f1": (
        "How often an attacker who sees only the embedding names a person's value correctly.",
        r"\text{Micro-F1} = \frac{1}{n} \sum_{i=1}^{n} \mathbf{1}[\hat a_i = a_i]",
        "With one value a person it is plain accuracy. Always answering the commonest value can score high, so it is read "
        "beside the majority rate. Low under these attackers is no proof that nothing can be read.",
    ),
    "balanced_accuracy": (
        "How often the attacker is right, with each value counting the same however rare it is.",
        r"\frac{1}{C} \sum_{c=1}^{C} \frac{|\{i: a_i = c, \hat a_i = c\}|}{|\{i: a_i = c\}|}",
        "Guessing gives 1/C. It does not say which values are read; a rare one moves it as much as a common one.",
    ),
    "auc": (
        "Of two people with different values, how often the attacker picks the right one.",
        r"\text{AUC} = \frac{1}{C} \sum_{c=1}^{C} \Pr[s_c(i) > s_c(j) \mid a_i = c,\, a_j \neq c]",
        "A coin gets 0.5 whatever the sizes of groups. Below 0.5 an attacker would turn the answers round, so pages show the "
        "distance from 0.5. It is a mean over values: one value can be read well while the others are not.",
    ),
    "usable_bits": (
        "How many bits about a person's value the attacker's probabilities carry beyond knowing how common each value is.",
        r"\frac{1}{n} \sum_{i=1}^{n} \bigl(\log_2 p(a_i \mid z_i) - \log_2 p(a_i)\bigr)",
        "It is what this attacker can use, a lower bound of what the embedding holds. Below 0 the attacker is worse than the shares.",
    ),
    "ndcg_at_10": (
        "How well the embedding ranks a person's held-out links among 100 candidates.",
        r"\text{NDCG@10} = \frac{1}{|U|} \sum_{u \in U} \frac{\sum_{k=1}^{10} y_{u,k} / \log_2(k+1)}{\max_\pi \sum_{k=1}^{10} y_{u,\pi(k)} / \log_2(k+1)}",
        "It rewards links as they were observed, also those that exist only for the sensitive attribute; the bias-free one does not.",
    ),
    "ndcg_at_10_bias_free": (
        "The same ranking, with each link counting as much as it would in a graph without the sensitive attributes' influence.",
        r"\frac{\sum_u W_u\, \text{NDCG}_u}{\sum_u W_u}, \quad w_e = \tilde R / R",
        "It takes the paper's model for granted: links are drawn from a structural graph, re-routed by a ratio R of the attributes.",
    ),
    "ndcg_gap": (
        "How differently held-out links are ranked for the groups.",
        r"\max_g \text{NDCG}_g - \min_g \text{NDCG}_g",
        "A difference can come from how many links a group has. Small groups are left out, and said.",
    ),
    "ndkl": (
        "How far the mix of groups in the top ranks is from the mix among the candidates.",
        r"\text{NDKL} = \frac{1}{Z} \sum_{k} \frac{1}{\log_2(k+1)} D_{KL}(D_{\tau^k} \,\|\, D)",
        "It looks at who is shown, not at whether the ranking is right.",
    ),
    "dp": (
        "How different the mean predicted probability of a link is between pairs of groups.",
        r"\text{DP} = \max_{c} \mu_c - \min_{c} \mu_c, \quad \mu_{ab} = \frac{1}{n_{ab}} \sum_{(u,v) \in ab} \sigma(z_u \cdot z_v)",
        f"It is about link predictions here, not about any later decision. Cells with under {MIN_PAIRS} pairs are left out and listed. "
        "The largest of many noisy cells is above 0 by chance; the page says what chance alone would give.",
    ),
    "eo": (
        "How different the predicted probability of links that do exist is between pairs of groups.",
        r"\text{EO} = \max_{c} \tau_c - \min_{c} \tau_c, \quad \tau_{ab} = \frac{1}{m_{ab}} \sum_{(u,v) \in E_{ab}} \sigma(z_u \cdot z_v)",
        f"E are the held-out links as observed, so a bias in who is linked stays in the yardstick. Cells with under {MIN_EDGES} links are left out and listed.",
    ),
}

_GLOSSARY = {
    "Attribute": "Something about people, such as region or gender, that the embedding was never meant to carry.",
    "Backbone": "The model that turns the graph into embeddings.",
    "Before and after": "The two runs that pages compare, chosen in the sidebar and kept in the address.",
    "Embedding": "A short vector for each node; whoever gets the vectors can run attackers on them.",
    "Exposure": "Seen: training may have read the tested people's values. Unseen: a twin of the run was trained without them, and it is measured.",
    "Floor": "What guessing would give: always the commonest value (majority), or the same attacker on random embeddings (random).",
    "Interval": "95 %, over the people tested for one seed, or Student's t over several training seeds. The caption of each chart says which.",
    "Lambda (λ)": "How much a method's penalty counts beside the link loss.",
    "Not enough evidence": "Too few people, pairs or links to say anything. Never shown as zero.",
    "Pareto front": "The points that no other point beats on both axes.",
    "Tied": "Another point is better on both axes, but not by more than the intervals.",
    "Worst attacker": "Whichever of the attackers reads most; its numbers lead.",
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
    """A metric's sentence, formula and limits; one this version does not explain keeps its name."""
    metric = METRICS[name]
    sentence, formula, limits = _WORDS.get(name, (metric.source, "", ""))
    return MetricHelp(name, metric.label, metric.direction, metric.source, sentence, formula, limits)


def method_page() -> MethodPage:
    """Definitions from the audit's metrics and the registries."""
    methods = catalogue.methods()
    attackers = [registry.find("audit.attackers", name) for name in registry.names("audit.attackers")]
    made = stamp()
    versions = {"uge-core": made["uge_core"], "python": made["python"], **made["packages"], "commit": made["commit"]}
    return MethodPage(
        tuple(metric_help(name) for name in METRICS),
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
