"""All methods and backbones in words: the page docs/methods.md, the terminal's list, and pieces of the dashboard's page."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from uge_core import registry
from uge_core.debias.supports import describe_method
from uge_core.plugin import Info, Reference


@dataclass(frozen=True)
class LeftOut:
    """A method that is not here, and why."""

    label: str
    reference: Reference
    formula: str
    reason: str


LEFT_OUT = (
    LeftOut(
        "NIFTY",
        Reference(
            "C. Agarwal, H. Lakkaraju, M. Zitnik",
            "Towards a Unified Framework for Fair and Stable Graph Representation Learning",
            "UAI",
            2021,
            "arXiv:2102.13186",
        ),
        r"\mathbb{E}_u\, D\!\left( \text{enc}(u),\ \text{enc}(\tilde u) \right), \quad \tilde u = u\ \text{with its sensitive feature flipped}",
        "Its fairness loss compares each node with itself in "
        "a counterfactual graph, where its sensitive feature is flipped. "
        "Encoders here never see a sensitive feature, so the counterfactual is "
        "the same graph and the loss is 0 for every "
        "embedding. Its random changes of other features and of edges "
        "are about stability and say nothing of the attribute.",
    ),
    LeftOut(
        "FairAdj",
        Reference(
            "P. Li, Y. Wang, H. Zhao, P. Hong, H. Liu",
            "On Dyadic Fairness: Exploring and Mitigating Bias in Graph Connections",
            "ICLR",
            2021,
        ),
        r"\min_{\tilde A} \left( \mathbb{E}\,[\, s_{uv} \mid g_u = g_v \,] - \mathbb{E}\,[\, s_{uv} \mid g_u \ne g_v \,] \right)^2, \quad \tilde A \ge 0,\ \tilde A \mathbf{1} = \mathbf{1},\ \tilde A_{uv} = 0 \text{ where no edge is}",
        "Between epochs it takes projected gradient steps on the "
        "weights of an encoder's messages, by their slope through "
        "the encoder. Encoders here are given the weights of messages, and "
        "work out no slope in them; weights that are "
        "learnt would also have to be kept with a run, to encode a graph again. FIPR asks nearly the same of the scores "
        "themselves, with every backbone.",
    ),
)

_SHARED = (
    "Every method trains with every backbone, alone or in one pass "
    "with others, on the CPU or a GPU; where it refuses a "
    "graph it says why. The score of a pair is the dot product of its two vectors, with every "
    "backbone; `cne` and `debayes` can be told to train and be audited on CNE's distance (`--set score=distance`).",
    "Edge weights count in the loss and in R and R~. The "
    "loss, R and R~ are over unordered pairs; messages, walks and steps "
    "follow directions (`--set direction=ignore`: both ways).",
    "Missing values: `--unknown level` makes them a value of "
    "their own, `exclude` leaves those people out, `impute` draws "
    "from neighbours. Of a method that reads attributes a copy, its twin, is trained without the tested people's "
    "values (`--exposure both`): on it the `unseen` rows are measured, of people hidden from training.",
    "A run that was cut off goes on from its checkpoint, on the same processor to the same bits, what "
    "discriminators and "
    "heads had learnt included. Where there is a lambda, `sweep --lams` trains a path, with `--warm` from its middle.",
)

WHICH = """\
- **Someone may have the vectors and other people's values:** UGE-N. Of all methods here whoever scores people against people reads least from it, at nearly the matched NDCG@10 of no debiasing. It trains longer than others, and encoders need some hundred epochs.
- **The same, sooner or on a very large graph:** UGE-ORK.
- **Predicted links must be equal between groups, and the attribute need not be hidden:** UGE-R or FIPR. Matched NDCG@10 rises; readers keep nearly all.
- **The paper's method is asked for:** UGE-C.
- **People and items, by MF:** DeBayes or FairOT, at next to no cost in NDCG@10.
- **The embedding is finished:** FairOT, which costs many links. LEACE and INLP stop linear readers alone.

Measured on Pokec-n (region), LastFM Asia (country) and MovieLens-1M (gender), three seeds each. No method brings the strongest attacker to a coin, and order and distance change with the graph: train those that fit beside no debiasing, and audit."""
"""Which method for whom, as docs/rivals.md has it in figures."""


def methods() -> tuple[Info, ...]:
    """The debiasing methods, the paper's first."""
    classes = [registry.find("debias.methods", name) for name in registry.names("debias.methods")]
    return tuple(describe_method(m) for m in sorted(classes, key=lambda m: m.position))


def backbones() -> tuple[Info, ...]:
    """The backbones by name."""
    return tuple(registry.find("backbones", name).info() for name in registry.names("backbones"))


def markdown() -> str:
    """The page docs/methods.md, as GitHub shows it."""
    known, models = methods(), backbones()
    parts = [
        "# Methods and backbones",
        "Written by `uge methods --markdown` out of the classes' own words and code; a test keeps the two alike.",
        *(f"- {prose(text)}" for text in _SHARED),
        "## Which method",
        f"{WHICH} [rivals.md](rivals.md) has the figures.",
        "## Overview",
        _table(
            ("method", "works through", "bipartite", "attributes", "lambda", "What-if re-encodes"),
            (
                (
                    f"[{prose(m.label)}](#{m.name})",
                    s["Works through"],
                    s["Bipartite"].split(":")[0],
                    s["Attributes read"].split(" jointly")[0],
                    s["Lambda"].split(" ")[0],
                    s["Re-encoded by What-if"].split(",")[0],
                )
                for m, s in ((m, dict(m.supports)) for m in known)
            ),
        ),
        "## Methods",
        *(_section(m) for m in known),
        "## Left out",
        *(left_out(x) for x in LEFT_OUT),
        "## Backbones",
        *(_section(b) for b in models),
    ]
    return "\n\n".join(parts) + "\n"


def left_out(what: LeftOut) -> str:
    """Markdown: what it is and why it is not here."""
    return f"**{what.label}.** {prose(str(what.reference))}\n\n{_display(what.formula)}\n\n{prose(what.reason)}"


def _section(info: Info) -> str:
    parts = [
        # a heading's own anchor would hold the label, which a link must not depend on
        f'<a id="{info.name}"></a>\n\n### {prose(info.label)}',
        f"`{info.name}` · {prose(info.citation)}",
        _display(info.formula),
        body(info),
    ]
    return "\n\n".join(parts)


def body(info: Info) -> str:
    """Markdown: all that is known of a plug-in but its label and LaTeX."""
    parts = [prose(info.summary), prose(info.line), *map(_paragraph, info.text)]
    parts += [f"**Departures:** {prose(text)}" for text in info.departures]
    parts += [f"**What it cannot:** {prose(text)}" for text in info.cannot]
    parts.append(_table(("supports", ""), info.supports))
    if info.options:
        cells = ((f"`{o.name}`", f"`{o.default}`", o.allowed, o.help) for o in info.options)
        parts.append(_table(("`--set`", "default", "allowed", ""), cells))
    parts += [prose(str(reference)) for reference in info.references]
    return "\n\n".join(parts)


def plain(info: Info) -> str:
    """For a terminal: the same in plain lines."""

    def wrapped(text: str, first: str = "", rest: str = "") -> str:
        return textwrap.fill(text, 100, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)

    lines = [f"{info.label}  ({info.name})", wrapped(info.summary), "", wrapped(info.line), ""]
    for text in info.text:
        lines += [text if text.startswith("    ") else wrapped(text), ""]
    for title, texts in (("Departures: ", info.departures), ("What it cannot: ", info.cannot)):
        lines += [part for text in texts for part in (wrapped(title + text), "")]
    wide = max(len(what) for what, _ in info.supports)
    lines += [wrapped(words, f"{what:{wide}}  ", " " * (wide + 2)) for what, words in info.supports]
    for o in info.options:
        allowed = f"; {o.allowed}" if o.allowed else ""
        lines += ["", wrapped(f"--set {o.name}={o.default}  {o.help}{allowed}", "", "    ")]
    return "\n".join([*lines, "", *map(str, info.references)])


def prose(text: str) -> str:
    """Text as Markdown that reads the same, but for `code`."""
    parts = re.split(r"(`+)(.+?)\1", text)
    out = []
    for i in range(0, len(parts), 3):
        out.append(re.sub(r"([\\`*_~<>\[\]#$|{}])", r"\\\1", parts[i]))
        if i + 1 < len(parts):
            out.append(f"`{parts[i + 2]}`")
    return "".join(out)


def _paragraph(text: str) -> str:
    return f"```text\n{textwrap.dedent(text)}\n```" if text.startswith("    ") else prose(text)


def _display(formula: str) -> str:
    return f"```math\n{formula}\n```"


def _table(head: Sequence[str], rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell if cell.startswith(('[', '`')) else prose(cell) for cell in cells)} |"

    return "\n".join([line(head), f"|{'---|' * len(head)}", *map(line, rows)])
