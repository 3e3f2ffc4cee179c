"""An attribute as one training member sees it: unknown and hidden values by policy.

Two kinds of values are missing to a member. Unknown ones are missing in the data (policy
``level``: a value of its own, the paper's way; ``exclude``: the node leaves the tables;
``impute``: a drawn value). Hidden ones are known but kept from the twin, so that an attacker can be
tested on nodes whose value no part of training saw (policy ``impute`` or ``exclude``).

Imputation draws one hard value per node from prior_g * prod R(g, g_v) over its known neighbours,
the ratios pulled towards 1 with two pseudo-edges; on a bipartite graph from naive Bayes over the
node's own items with add-one smoothing. A draw, not the maximum: where neighbours say little the
maximum puts every node into the largest group. On a masked tenth of the known nodes the most likely
value is compared with the majority value; where it does not win by two standard errors the
attribute falls back to ``exclude``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from uge_core.arrays import BoolArray, IntArray
from uge_core.errors import ConfigError
from uge_core.graph.graph import NOT_APPLICABLE, Attribute, AttributedGraph
from uge_core.registry import unknown_name

OUT = -1
POLICIES = ("level", "exclude", "impute")


def missing_policies(graph: AttributedGraph, unknown: Mapping[str, str] | str | None) -> dict[str, str]:
    """The policy for missing values of every attribute of people."""
    policies: dict[str, str] = {a.name: graph.defaults.unknown for a in graph.audited}
    if isinstance(unknown, str):
        policies = dict.fromkeys(policies, unknown)
    elif unknown is not None:
        policies.update({graph.attribute(name).name: policy for name, policy in unknown.items()})
    for policy in policies.values():
        if policy not in POLICIES:
            raise ConfigError(unknown_name("policy for missing values", policy, POLICIES))
    return policies


@dataclass(frozen=True)
class ImputationReport:
    """How well neighbours tell an attribute, measured on a masked tenth of the known nodes.

    Attributes:
        attribute: its name.
        missing: how many nodes lacked a value.
        n: nodes masked for the check.
        accuracy: share of them whose most likely value is right.
        majority: share of them that have the most frequent value.
        used: whether imputed values are used; False: the attribute fell back to ``exclude``.
    """

    attribute: str
    missing: int
    n: int
    accuracy: float
    majority: float
    used: bool

    def to_json(self) -> dict[str, Any]:
        """The report as a record."""
        return asdict(self)

    @property
    def note(self) -> str:
        """One sentence for the rows of an audit."""
        # More digits would tell the number of masked nodes, and so of known values.
        accuracies = (
            f"neighbours tell {self.attribute} right for {self.accuracy:.1f} of a masked tenth of the known nodes, "
            f"majority {self.majority:.1f}"
        )
        how = (
            "missing values were imputed"
            if self.used
            else "no gain by two standard errors, so nodes without a value were excluded"
        )
        return f"{accuracies}: {how}"


@dataclass(frozen=True, eq=False)
class Values:
    """One attribute as one member sees it.

    Attributes:
        name: the attribute.
        codes: (N,) value for lookups and group means, `OUT` where the node has none.
        fitted: (N,) nodes whose value is really known, on which ratios are estimated.
        labels: names of the values.
        report: the imputation check, where one was made.
    """

    name: str
    codes: IntArray
    fitted: BoolArray
    labels: tuple[str, ...]
    report: ImputationReport | None = None


def resolve_values(
    attribute: Attribute,
    graph: AttributedGraph,
    train_edges: IntArray,
    *,
    unknown: str,
    hidden: BoolArray | None = None,
    hidden_policy: str = "impute",
    rng: np.random.Generator,
) -> Values:
    """The attribute's values under the policies.

    Args:
        attribute: whose values.
        graph: for the sides.
        train_edges: (2, E_train), the only edges imputation may look at.
        unknown: policy for values missing in the data.
        hidden: (N,) nodes whose value this member must not see, or None.
        hidden_policy: policy for those.
        rng: draws imputed values and the masked tenth.
    """
    codes = attribute.codes.copy()
    labels = attribute.labels
    if unknown == "level" and attribute.unknown.any():
        codes[attribute.unknown] = len(labels)
        labels = (*labels, attribute.unknown_label)
    wanted = (codes < 0) & (attribute.unknown if unknown == "impute" else False)
    if hidden is not None:
        codes[hidden] = OUT
        if hidden_policy == "impute":
            wanted = wanted | hidden
    codes[codes < 0] = OUT
    fitted = codes >= 0
    if not wanted.any() or np.count_nonzero(fitted) < 2:  # one is masked for the check
        return Values(attribute.name, codes, fitted, labels)
    report = _check(attribute.name, codes, len(labels), int(wanted.sum()), graph, train_edges, rng)
    if report.used:
        score = _log_posterior(codes, len(labels), wanted, graph, train_edges)
        codes = codes.copy()
        codes[wanted] = np.argmax(score + rng.gumbel(size=score.shape), axis=1)
    return Values(attribute.name, codes, fitted, labels, report)


def soft_values(values: Values, graph: AttributedGraph, train_edges: IntArray) -> npt.NDArray[np.float32]:
    """(N, G) a probability for each value: 1 for one that is known, else the posterior that imputation draws from.

    Rows of nodes that the attribute does not apply to are 0.

    Args:
        values: the attribute as a member sees it; values that were imputed are not taken for known.
        graph: for the sides.
        train_edges: (2, E_train), the only edges it looks at.
    """
    num, known = len(values.labels), np.where(values.fitted, values.codes, OUT)
    soft = np.zeros((graph.num_nodes, num), np.float32)
    soft[values.fitted, known[values.fitted]] = 1.0
    wanted = ~values.fitted & (graph.attribute(values.name).codes != NOT_APPLICABLE)
    if wanted.any():
        score = _log_posterior(known, num, wanted, graph, train_edges)
        share = np.exp(score - score.max(axis=1, keepdims=True))
        soft[wanted] = share / share.sum(axis=1, keepdims=True)
    return soft


def _check(
    name: str,
    codes: IntArray,
    num_values: int,
    missing: int,
    graph: AttributedGraph,
    edges: IntArray,
    rng: np.random.Generator,
) -> ImputationReport:
    known = np.nonzero(codes >= 0)[0]
    masked = rng.choice(known, max(1, len(known) // 10), replace=False)
    seen = codes.copy()
    seen[masked] = OUT
    where = np.zeros(len(codes), dtype=bool)
    where[masked] = True
    truth = codes[where]
    accuracy = float((np.argmax(_log_posterior(seen, num_values, where, graph, edges), axis=1) == truth).mean())
    majority = float((truth == np.argmax(np.bincount(seen[seen >= 0], minlength=num_values))).mean())
    error = np.sqrt(max(majority * (1 - majority), 1e-12) / len(truth))
    return ImputationReport(name, missing, len(truth), accuracy, majority, accuracy > majority + 2 * error)


def _log_posterior(
    codes: IntArray, num_values: int, wanted: BoolArray, graph: AttributedGraph, edges: IntArray
) -> npt.NDArray[np.float64]:
    """(wanted.sum(), num_values) log of prior times likelihood, up to a constant per row."""
    from scipy import sparse

    n = graph.num_nodes
    known = codes >= 0
    sizes = np.bincount(codes[known], minlength=num_values).astype(float)
    prior = np.log(np.maximum(sizes, 1e-9) / sizes.sum())
    prior[sizes == 0] = -np.inf
    both = np.concatenate([edges, edges[::-1]], axis=1)
    adjacency = sparse.csr_matrix((np.ones(both.shape[1]), (both[0], both[1])), shape=(n, n))
    members = sparse.csr_matrix(
        (np.ones(int(known.sum())), (np.nonzero(known)[0], codes[known])), shape=(n, num_values)
    )
    rows = sparse.csr_matrix(adjacency[np.nonzero(wanted)[0]])
    if graph.bipartite:
        taste = (members.T @ adjacency).toarray()[:, graph.num_users :] + 1.0
        likelihood = np.log(taste / taste.sum(axis=1, keepdims=True))
        own: npt.NDArray[np.float64] = rows[:, graph.num_users :] @ likelihood.T + prior
        return own
    counts = (members.T @ adjacency @ members).toarray()
    expected = counts.sum() * np.outer(sizes, sizes) / sizes.sum() ** 2
    ratio = np.log((counts + 2.0) / (expected + 2.0))
    score: npt.NDArray[np.float64] = (rows @ members) @ ratio.T + prior
    return score
