"""What is measured: each metric once, with all that lists, pages, policies and reports say of it.

A metric is an entry here and what measures it (`leakage.MEASURES` for one of leakage). Everything else follows: the
schema's names, labels and orders on pages, the rows that lists of many runs read, the Method page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Direction = Literal["lower", "higher"]
Kind = Literal["leakage", "links", "gap", "check"]

MIN_PAIRS = 100
"""Pairs in a cell of DP, under which it is left out of the gap."""
MIN_EDGES = 30
"""Edges in a cell of EO, under which it is left out of the gap."""
MOST_PEOPLE = 100_000
"""People up to whom an audit measures everybody, and of more whom it draws; see `sampling`."""
EXACT_NODES = 100_000
"""Nodes up to which DP is over all pairs, and above which over a sample of them."""


@dataclass(frozen=True)
class Metric:
    """What is true of a metric whatever the data.

    Attributes:
        name: as in a row.
        label: as a reader sees it.
        direction: which way is better for the people in the graph ("lower" leakage, "higher" utility).
        low: smallest possible value.
        high: largest possible value.
        source: where the formula comes from.
        kind: "leakage" is measured by attacker, the more the larger; "links" of ranked links; "gap" between groups;
            "check" says whether the others can be relied on.
        short: the label where there is little room, as in a table's row.
        unit: what a policy calls its number.
        position: where it stands among others on pages.
        listed: shown where many runs are listed; its rows are stored apart, so that such lists stay quick.
        leads: in the short table of two runs; else in the full one alone.
        since: the version of the audit that measures it first, so that older reports do not miss it.
        sentence: what it says, in one sentence.
        formula: LaTeX.
        limits: what it does not say.
    """

    name: str
    label: str
    direction: Direction
    low: float
    high: float
    source: str
    kind: Kind
    short: str
    unit: str = "value"
    position: int = 99
    listed: bool = False
    leads: bool = False
    since: int = 1
    sentence: str = ""
    formula: str = ""
    limits: str = ""


METRICS: Mapping[str, Metric] = {
    m.name: m
    for m in (
        Metric(
            "micro_f1",
            "Leakage, Micro-F1",
            "lower",
            0.0,
            1.0,
            "UGE, Sec. 6.2",
            kind="leakage",
            short="Micro-F1",
            unit="share",
            position=1,
            listed=True,
            leads=True,
            sentence="How often an attacker who sees only the embedding names a person's value correctly.",
            formula=r"\text{Micro-F1} = \frac{1}{n} \sum_{i=1}^{n} \mathbf{1}[\hat a_i = a_i]",
            limits=(
                "With one value a person it is plain accuracy. Always answering the commonest value can score high, "
                "so it is read "
                "beside the majority rate. Low under these attackers is no proof that nothing can be read."
            ),
        ),
        Metric(
            "balanced_accuracy",
            "Leakage, balanced accuracy",
            "lower",
            0.0,
            1.0,
            "mean recall of the classes",
            kind="leakage",
            short="balanced accuracy",
            unit="share",
            position=3,
            sentence="How often the attacker is right, with each value counting the same however rare it is.",
            formula=r"\frac{1}{C} \sum_{c=1}^{C} \frac{|\{i: a_i = c, \hat a_i = c\}|}{|\{i: a_i = c\}|}",
            limits="Guessing gives 1/C. It does not say which values are read; "
            "a rare one moves it as much as a common one.",
        ),
        Metric(
            "auc",
            "Leakage, AUC",
            "lower",
            0.0,
            1.0,
            "macro one-vs-rest area under the ROC curve",
            kind="leakage",
            short="AUC",
            unit="auc",
            position=0,
            listed=True,
            leads=True,
            sentence="Of two people with different values, how often the attacker picks the right one.",
            formula=r"\text{AUC} = \frac{1}{C} \sum_{c=1}^{C} \Pr[s_c(i) > s_c(j) \mid a_i = c,\, a_j \neq c]",
            limits=(
                "A coin gets 0.5 whatever the sizes of groups. Which way to read is learned beforehand, so a value below "
                "0.5 counts as nothing read. It is a mean over values: one value can be read well while the others are not."
            ),
        ),
        Metric(
            "usable_bits",
            "Leakage, usable information (bits)",
            "lower",
            -math.log2(1000.0),
            math.inf,
            "log loss of the prior less the attacker's, in bits a node",
            kind="leakage",
            short="usable information (bits)",
            unit="bits",
            position=4,
            sentence="How many bits about a person's value the attacker's probabilities carry beyond knowing how "
            "common each value is.",
            formula=r"\frac{1}{n} \sum_{i=1}^{n} \bigl(\log_2 p(a_i \mid z_i) - \log_2 p(a_i)\bigr)",
            limits="It is what this attacker can use, a lower bound of what the embedding holds. Below 0 the "
            "attacker is worse than the shares.",
        ),
        Metric(
            "ndcg_at_10_matched",
            "Link quality, attribute-matched NDCG@10",
            "higher",
            0.0,
            1.0,
            "NDCG@10 among strangers of the friend's group",
            kind="links",
            short="matched NDCG@10",
            unit="ndcg",
            position=2,
            listed=True,
            leads=True,
            since=3,
            sentence="How well the embedding ranks a held-out link among 99 strangers of the friend's own group.",
            formula=r"\frac{1}{|L|} \sum_{(u,v) \in L} "
            r"\frac{\mathbf{1}[\rho_{uv} \le 10]}{\log_2(\rho_{uv} + 1)}, \quad "
            r"\rho_{uv} = 1 + |\{w \in C_{uv}: s_{uw} > s_{uv}\}|, \; a_w = a_v",
            limits="Knowing a person's group helps nothing here, so it can be held between an embedding that knows the "
            "attribute and one that does not. Popular people still rank high: hold it against the degree floor.",
        ),
        Metric(
            "ndcg_attribute_share",
            "NDCG@10 that comes from the attribute",
            "lower",
            -1.0,
            1.0,
            "NDCG@10 among uniform strangers less that among strangers of the friend's group, same links",
            kind="links",
            short="NDCG@10 from the attribute",
            unit="ndcg",
            position=6,
            since=3,
            sentence="How much of the link quality is lost once strangers are of the friend's own group.",
            formula=r"\text{NDCG@10}_\text{uniform} - \text{NDCG@10}_\text{matched}",
            limits="What an untreated embedding loses here is an estimate of what one that is blind to the attribute "
            "gives up in the usual figure; it is no bound.",
        ),
        Metric(
            "ndcg_at_10",
            "Link quality, NDCG@10",
            "higher",
            0.0,
            1.0,
            "UGE, Sec. 6.2",
            kind="links",
            short="NDCG@10",
            unit="ndcg",
            position=5,
            listed=True,
            leads=True,
            sentence="How well the embedding ranks a person's held-out links among 100 candidates.",
            formula=r"\text{NDCG@10} = \frac{1}{|U|} \sum_{u \in U} \frac{\sum_{k=1}^{10} y_{u,k} / \log_2(k+1)}{\max_\pi \sum_{k=1}^{10} y_{u,\pi(k)} / \log_2(k+1)}",
            limits="It rewards links as they were observed, also those that exist only for the sensitive attribute; "
            "the bias-free one does not.",
        ),
        Metric(
            "ndcg_at_10_bias_free",
            "Bias-free NDCG@10",
            "higher",
            0.0,
            1.0,
            "NDCG@10 weighted by R~/R, Eq. (3)-(6)",
            kind="links",
            short="bias-free NDCG@10",
            unit="ndcg",
            position=7,
            leads=True,
            sentence="The same ranking, with each link counting as much as it would in a graph without the "
            "sensitive attributes' influence.",
            formula=r"\frac{\sum_u W_u\, \text{NDCG}_u}{\sum_u W_u}, \quad w_e = \tilde R / R",
            limits="It takes the paper's model for granted: links are drawn from a structural graph, re-routed by a "
            "ratio R of the attributes.",
        ),
        Metric(
            "ndcg_gap",
            "NDCG@10 gap between groups",
            "lower",
            0.0,
            1.0,
            "largest less smallest mean NDCG@10 of a group",
            kind="links",
            short="NDCG@10 gap",
            unit="ndcg",
            position=8,
            sentence="How differently held-out links are ranked for the groups.",
            formula=r"\max_g \text{NDCG}_g - \min_g \text{NDCG}_g",
            limits="A difference can come from how many links a group has. Small groups are left out, and said.",
        ),
        Metric(
            "ndkl",
            "Rank exposure, NDKL@10",
            "lower",
            0.0,
            math.inf,
            "Geyik et al., KDD 2019, in nats",
            kind="links",
            short="NDKL",
            unit="nats",
            position=9,
            sentence="How far the mix of groups in the top ranks is from the mix among the candidates.",
            formula=r"\text{NDKL} = \frac{1}{Z} \sum_{k} \frac{1}{\log_2(k+1)} D_{KL}(D_{\tau^k} \,\|\, D)",
            limits="It looks at who is shown, not at whether the ranking is right.",
        ),
        Metric(
            "dp",
            "Demographic parity gap",
            "lower",
            0.0,
            1.0,
            "UGE, Sec. 6.2; DeBayes, unordered pairs",
            kind="gap",
            short="DP gap",
            unit="probability",
            position=10,
            leads=True,
            sentence="How different the mean predicted probability of a link is between pairs of groups.",
            formula=r"\text{DP} = \max_{c} \mu_c - \min_{c} \mu_c, \quad \mu_{ab} = \frac{1}{n_{ab}} \sum_{(u,v) \in ab} \sigma(z_u \cdot z_v)",
            limits=(
                f"It is about link predictions here, not about any later decision. Cells with under {MIN_PAIRS} "
                "pairs are left out and listed. "
                "The largest of many noisy cells is above 0 by chance; the page says what chance alone would give."
            ),
        ),
        Metric(
            "eo",
            "Equalized opportunity gap",
            "lower",
            0.0,
            1.0,
            "UGE, Sec. 6.2; DeBayes, unordered pairs",
            kind="gap",
            short="EO gap",
            unit="probability",
            position=11,
            leads=True,
            sentence="How different the predicted probability of links that do exist is between pairs of groups.",
            formula=r"\text{EO} = \max_{c} \tau_c - \min_{c} \tau_c, \quad \tau_{ab} = \frac{1}{m_{ab}} \sum_{(u,v) \in E_{ab}} \sigma(z_u \cdot z_v)",
            limits="E are the held-out links as observed, so a bias in who is linked stays in the yardstick. Cells "
            f"with under {MIN_EDGES} links are left out and listed.",
        ),
        Metric(
            "usable",
            "Usable embedding",
            "higher",
            0.0,
            1.0,
            "vectors and scores differ, and links are ranked above chance",
            kind="check",
            short="usable",
            position=12,
            listed=True,
            since=3,
            sentence="Whether the embedding says anything about links at all: 1 where it does, 0 where it does not.",
            formula=r"\mathbf{1}[\text{vectors differ}, \; \text{scores differ}, \; \text{NDCG@10 above chance}]",
            limits="An embedding that says nothing leaks nothing and treats all groups alike, so no other figure of it "
            "is a verdict. With too few held-out links this is not measured.",
        ),
    )
}


def ordered_metrics(kind: Kind | None = None) -> tuple[Metric, ...]:
    """The metrics of a kind, or all, in the order of pages."""
    return tuple(sorted((m for m in METRICS.values() if kind in (None, m.kind)), key=lambda m: (m.position, m.name)))
