import re

import pytest
import yaml

from uge_core.errors import ConfigError
from uge_core.runs.recipe import parse_recipe, recipe, recipe_names
from uge_core.training.config import known_settings

SMALL = """
title: a table
source: Sec. 0
data: town
attributes: [gender]
columns:
  - {label: No Debiasing, run: none}
  - {label: Random}
published:
  - {backbone: node2vec, attribute: gender, figure: micro_f1, values: [.6, .5]}
"""


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_of_the_package_has_settings_that_its_methods_know(name):
    made = recipe(name)
    assert set(made.attributes) <= set(made.joint_attributes)
    assert made.untreated is not None and made.claims and (made.published or made.panels)
    assert made.data in ("pokec-n", "pokec-z", "movielens-1m") and made.nodes
    for backbone in made.backbones:
        for column in made.columns:
            if column.entry:
                known = known_settings(backbone, column.entry.method)
                assert set(column.entry.options) | set(column.settings) <= set(known)
    assert set(made.settings) <= set().union(*(known_settings(b, "none") for b in made.backbones))


def test_every_published_number_is_in_the_paper(shared_data):
    text = (shared_data("pokec-n").parents[1] / "paper.tex").read_text()
    printed = sorted(re.findall(r"0\.\d{4}(?!\d)", text[text.index("\\section{Experiments}") :]))
    ours = [f"{value:.4f}" for name in ("table-pokec-n", "table-pokec-z") for value in recipe(name).published.values()]
    # The rows of Pokec-z with GAT stand in both tables of the paper.
    ours += [
        f"{v:.4f}" for (b, _, f, _), v in recipe("table-pokec-z").published.items() if (b, f) == ("gat", "micro_f1")
    ]
    assert len(ours) == 21 + 168 + 21
    assert sorted(ours) == [p for p in printed if p in set(ours)]
    assert recipe("table-pokec-n").published["node2vec", "AGE", "micro_f1", "UGE-C"] == 0.0194
    assert recipe("table-pokec-z").published["gcn", "region", "ndcg", "CFC"] == 0.3836


def test_a_recipe_that_is_written_wrongly_is_refused():
    assert parse_recipe("small", SMALL).published == {
        ("node2vec", "gender", "micro_f1", "No Debiasing"): 0.6,
        ("node2vec", "gender", "micro_f1", "Random"): 0.5,
    }
    for change, said in (
        ({"rows": []}, "rows"),
        ({"attributes": ["city"]}, "city"),
        ({"claims": [{"words": "w", "less": ["UGE-C"], "than": ["Random"]}]}, "UGE-C"),
        ({"panels": [["micro_f1", "colour"]]}, "colour"),
        ({"columns": [{"label": "Random"}]}, "2 published values for 1 columns"),
        ({"columns": [{"run": "none"}]}, "label missing"),
    ):
        with pytest.raises(ConfigError, match=said):
            parse_recipe("small", yaml.safe_dump(yaml.safe_load(SMALL) | change))
    with pytest.raises(ConfigError, match="table-pokec-n"):
        recipe("table-pokec")


def test_a_recipe_takes_what_it_does_not_say_from_the_one_it_is_like():
    table, figure, other = (recipe(n) for n in ("table-pokec-n", "fig-tradeoff-pokec-n", "fig-lambda-pokec-n"))
    assert figure.columns == table.columns and figure.settings == table.settings and not figure.published
    assert figure.claims[: len(table.claims)] == table.claims and figure.claims[-1].figure == "ndcg"
    assert other.settings == table.settings and other.columns == recipe("fig-lambda-pokec-z").columns
    assert other.joint_attributes == ("gender", "region", "AGE") and other.data == "pokec-n"
