"""What is said about a graph before anyone trains on it: each message with its count, first rows and remedy."""

import time

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.datasets.findings import probable_codes, says_not_given, words_not_given
from uge_core.errors import GraphError
from uge_core.graph.association import association
from uge_core.graph.graph import Attribute


def ring(n: int) -> str:
    return "source,target\n" + "".join(f"{i},{(i + 1) % n}\n{i},{(i + 3) % n}\n" for i in range(n))


def table(n: int, **columns) -> str:
    names = list(columns)
    rows = (",".join([str(i), *(str(columns[c][i]) for c in names)]) for i in range(n))
    return "\n".join([",".join(["id", *names]), *rows]) + "\n"


def found(graph, code: str):
    (message,) = [m for m in graph.messages if m.code == code]
    assert message.remedy and message.text and message.count
    return message


def test_dropped_rows_are_shown(write):
    edges = "source,target\na,b\nb,a\nc,c\na,b\nb,c\n"
    graph = load(write({"nodes.csv": "id,g\na,1\nb,2\nc,1\nd,2\n", "edges.csv": edges}))
    loops, twice, alone = (found(graph, c) for c in ("self-loops", "duplicate-edges", "nodes-without-edges"))
    assert (loops.level, loops.count, loops.examples) == ("note", 1, ("c - c",))
    assert (twice.level, twice.count, twice.examples) == ("note", 2, ("b - a", "a - b"))
    assert (alone.level, alone.count, alone.examples) == ("note", 1, ("d",))


def test_late_duplicates_are_shown_too(write):
    n = 100_100
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(n)) + f"{n},{n - 1}\n"
    nodes = table(n + 1, g=np.arange(n + 1) % 2)
    assert found(load(write({"nodes.csv": nodes, "edges.csv": edges})), "duplicate-edges").examples == (
        f"{n} - {n - 1}",
    )


@pytest.mark.parametrize(
    ("nodes", "edges", "text"),
    [
        (
            ["a ", "b", "c"],
            [("a", "b"), ("b", "c")],
            "1 id would match without the blanks around it ('a'); remove the blanks in both files",
        ),
        (
            ["a", "b", "c"],
            [("a ", "b"), ("b ", "c")],
            "2 ids would match without the blanks around them ('a '); remove",
        ),
        (
            ["1", "2", "3"],
            [("1.0", "2.0"), ("2", "3")],
            "2 ids would match as numbers ('1.0'); write each id in the same way",
        ),
        (
            ["007", "8", "9"],
            [("7", "8"), ("8", "9")],
            "1 id would match as a number ('7'); write each id in the same way",
        ),
        (["a", "b", "c"], [("x", "b"), ("b", "c")], "add the nodes, remove these rows, or write unknown_nodes: drop"),
    ],
)
def test_ids_that_match_only_when_rewritten_block(write, nodes, edges, text):
    rows = "id,g\n" + "".join(f'"{v}",{i % 2}\n' for i, v in enumerate(nodes))
    links = "source,target\n" + "".join(f'"{a}","{b}"\n' for a, b in edges)
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": rows, "edges.csv": links}))
    assert text in str(error.value)


def test_small_groups_and_cells_without_edges(write):
    group = ["big"] * 30 + ["few"] * 4 + ["one"]
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(33)) + "33,1\n34,0\n"
    graph = load(write({"nodes.csv": table(35, g=group), "edges.csv": edges}))
    small, empty = found(graph, "small-groups"), found(graph, "cells-without-edges")
    assert (small.level, small.count, small.examples) == ("warning", 2, ("g one: 1", "g few: 4"))
    # A group of one node has no pair within, so only few - one is missing; pairs of so few people are not named.
    assert (empty.level, empty.count, empty.examples) == ("note", 1, ())


def test_examples_of_cells_without_edges_are_of_groups_that_are_not_small(write):
    group = ["a"] * 12 + ["b"] * 12 + ["few"] * 4
    edges = "source,target\n" + "".join(f"{i},{i + 1}\n" for i in [*range(11), *range(12, 23)]) + "0,24\n"
    empty = found(load(write({"nodes.csv": table(28, g=group), "edges.csv": edges})), "cells-without-edges")
    assert (empty.count, empty.examples) == (3, ("a - b",))


def test_an_attribute_under_another_name(write):
    n = 200
    rng = np.random.default_rng(0)
    region = rng.integers(0, 3, n)
    columns = {
        "region": [f"r{v}" for v in region],
        "city": [f"c{v}{i % 4}" for i, v in enumerate(region)],
        "other": rng.integers(0, 2, n),
        "flag": [int(i == 0) for i in range(n)],
        "rent": region * 1000 + rng.normal(0, 20, n),
        "income": rng.normal(0, 1, n),
    }
    graph = load(write({"nodes.csv": table(n, **columns), "edges.csv": ring(n)}))
    pairs, feature = found(graph, "proxy-attributes"), found(graph, "proxy-features")
    assert (pairs.level, pairs.count, pairs.examples) == ("warning", 1, ("region and city: Cramér's V 0.977",))
    assert "--sensitive A,B" in pairs.remedy
    assert feature.count == 2
    assert feature.examples[0].startswith("rent by region: correlation ratio ")


def test_association_is_corrected_for_chance():
    rng = np.random.default_rng(1)
    a = Attribute("a", rng.integers(0, 2, 300), ("x", "y"))
    b = Attribute("b", rng.integers(0, 150, 300), tuple(map(str, range(150))))
    assert association(a, b) < 0.3
    noisy = Attribute("c", np.where(np.arange(300) < 15, 1 - a.codes, a.codes), ("x", "y"))
    # A plain oracle: V of a 2 x 2 table is |phi| = 1 - 2 * share flipped on balanced margins.
    assert association(a, noisy) == pytest.approx(0.9, abs=0.01)
    assert association(a, a) == 1.0
    assert association(a, Attribute("d", np.full(300, -1), ("x", "y"))) == 0.0


def test_identifiers(write):
    n = 300
    columns = {"name": [f"n{i}" for i in range(n)], "row": range(1000, 1000 + n), "pay": np.arange(n) * 37 + 0.5}
    graph = load(write({"nodes.csv": table(n, g=np.arange(n) % 2, **columns), "edges.csv": ring(n)}))
    message = found(graph, "identifier-column")
    assert (message.level, message.count, message.examples) == ("warning", 2, ("name", "row"))
    assert [a.name for a in graph.attributes] == ["g"]
    few = load(write({"nodes.csv": table(12, g=[0, 1] * 6, name=[f"n{i}" for i in range(12)]), "edges.csv": ring(12)}))
    message = found(few, "identifier-column")
    assert (message.level, message.examples) == ("note", ("name",))
    assert [a.name for a in few.attributes] == ["g"]


def test_a_probable_missing_code_and_many_values(write):
    n = 400
    age = np.where(np.arange(n) % 10 == 0, 0, 18 + np.arange(n) % 37)
    pay = np.where(np.arange(n) % 50 == 0, 99999, 1000 + np.arange(n) * 1.5)
    graph = load(write({"nodes.csv": table(n, age=age, pay=pay), "edges.csv": ring(n)}))
    code, many = found(graph, "probable-missing-code"), found(graph, "many-values")
    assert (code.level, code.count, code.examples) == ("warning", 2, ("age: 0, 40 cells", "pay: 99999, 8 cells"))
    assert "missing: in dataset.yaml" in code.remedy
    assert (many.level, many.count, many.examples) == ("note", 1, ("age: 38",))
    assert "quantile:5, width:10" in many.remedy
    decimal = found(graph, "decimal-numbers")
    assert (decimal.level, decimal.count, decimal.examples) == ("note", 1, ("pay",))
    assert "quantile:5, width:10" in decimal.remedy


def test_words_for_a_missing_value_are_told_of(write):
    n = 60
    columns = {"g": ["x", "y", "NA"] * 20, "pay": ["null" if i % 6 == 0 else i * 37.5 for i in range(n)]}
    graph = load(write({"nodes.csv": table(n, h=["a", "b"] * 30, **columns), "edges.csv": ring(n)}))
    code = found(graph, "probable-missing-code")
    assert (code.level, code.count, code.examples) == ("warning", 2, ("g: NA, 20 cells", "pay: null, 10 cells"))
    assert "2 values that probably mean that nothing was given" in code.text


@pytest.mark.parametrize(
    ("name", "values", "code"),
    [
        ("x", [1, 99], 99),
        ("x", [0, 999], 999),
        ("x", [1, -9], -9),
        ("x", [-7, 7], None),
        ("x", [50, 99], None),
        ("x", [1, 9], None),
        ("x", [1, 2, -66], -66),
        ("x", [1, 2, -77], -77),
        ("x", [1, 2, 3, 4, 5, 9], 9),
        ("x", [0, 1, 2, 3, 4, 5, 9], None),
        ("x", [1, 2, 3, 4, 5, 6, 7, 9], None),
        ("age", [0, 18, 25, 60], 0),
        ("user_age", [-1, 18, 25, 60], -1),
        ("average", [0, 18, 25, 60], None),
        ("children", [0, 1, 2, 3], None),
        ("job", [-1, 0, 1, 2], -1),
        ("score", [-3, -2, -1, 0, 1], None),
        ("sign", [-1, 1], None),
        ("x", [1, 5, 40, 999], 999),
        ("x", [1, 5, 40, 9999999], 9999999),
        ("x", [1, 5, 40, 41000], None),
        ("x", [-999, 1, 5, 40], -999),
        ("x", [np.nan, np.nan], None),
        ("x", [4, 4, 4], None),
    ],
)
def test_which_numbers_are_codes(name, values, code):
    assert next(iter(probable_codes(name, np.array(values, dtype=float))), None) == code


AGES = [18, 22, 25, 31, 33, 40, 41, 47, 52, 58, 60, 66, 71, 80]


@pytest.mark.parametrize(
    ("name", "values", "codes"),
    [
        ("age", [*AGES, -9, -8, -1], (-9, -8, -1)),
        ("age", [*AGES, -1, 0, 999], (-1, 0, 999)),
        ("Alter", [*AGES, -99], (-99,)),
        ("age", [*AGES, 99], (99,)),
        ("age", [*AGES, 97, 98, 99], (97, 98, 99)),
        ("age", [*AGES, 88, 90, 93, 95, 97, 99], ()),
        ("age", [*AGES, 999], (999,)),
        ("trust", [*range(1, 11), 77, 88, 99], (77, 88, 99)),
        ("trust", [*range(11), 77, 88, 99], (77, 88, 99)),
        ("happy", [*range(11), 97, 98, 99], (97, 98, 99)),
        ("happy", [*range(1, 8), 97, 98, 99, -1], (-1, 97, 98, 99)),
        ("agree", [1, 2, 3, 4, 5, 8, 9], (8, 9)),
        ("agree", [1, 2, 3, 4, 7, 8, 9], (7, 8, 9)),
        ("agree", [1, 2, 3, 4, 5, -9, -8, -1], (-9, -8, -1)),
        ("agree", [-2, -1, 0, 1, 2], ()),
        ("agree", [-3, -2, -1, 1, 2, 3], ()),
        ("sex", [1, 2, 9], (9,)),
        ("sex", [0, 1, 9], (9,)),
        ("sex", [1, 2, 99], (99,)),
        ("grade", [1, 2, 3, 4, 5, 6, 7, 8, 9], ()),
        ("share", [*range(0, 101)], ()),
        ("share", [0, 10, 25, 50, 75, 88, 99], ()),
        ("income", [1000, 2000, 3500, 5000, 99999, -7], (-7, 99999)),
        ("balance", [-250.5, -3, 1, 700], ()),
        ("degrees", [-9, -8, -7, -3, 0, 4, 12], ()),
        ("x", [1, 2, 3, 777, 888], (777, 888)),
        ("year", [0, 1950, 1960, 1975, 9999], (0, 9999)),
    ],
)
def test_codes_of_surveys(name, values, codes):
    assert probable_codes(name, np.array(values, dtype=float)) == codes


def test_every_code_is_named_with_its_cells(write):
    n = 400
    age = [(-9, -8, -1)[i % 20 // 5] if i % 20 in (0, 5, 10) else 18 + i % 70 for i in range(n)]
    trust = [(77, 88, 99)[i % 30 // 10] if i % 10 == 3 else i % 11 for i in range(n)]
    card = "edges: edges.csv\nnodes: nodes.csv\nattributes: {age: {bins: 'quantile:3'}, trust: {}}\n"
    files = {"nodes.csv": table(n, age=age, trust=trust), "edges.csv": ring(n), "dataset.yaml": card}
    code = found(load(write(files)), "probable-missing-code")
    assert code.count == 6
    ages = tuple(f"age: {c}, 20 cells" for c in (-9, -8, -1))
    assert code.examples == (*ages, "trust: 77, 14 cells", "trust: 88, 13 cells", "trust: 99, 13 cells")
    declared = card.replace("bins:", "missing: [-9, -8, -1], bins:").replace(
        "trust: {}", "trust: {missing: [77, 88, 99]}"
    )
    graph = load(write(files | {"dataset.yaml": declared}))
    assert not [m for m in graph.messages if m.code == "probable-missing-code"]
    assert int(graph.attribute("age").unknown.sum()) == 60


@pytest.mark.parametrize(
    "cell",
    [
        "Prefer not to say",
        "prefer_not_to_say",
        "I prefer not to answer.",
        "I'd rather not say",
        "I\u2019d rather not disclose",
        "Rather not say",
        "(don't know)",
        "Refused",
        "[not stated]",
        "Keine Angabe",
        "k. A.",
        "weiß nicht",
        "Je préfère ne pas répondre",
        "non renseigné",
        "Prefiero no decirlo",
        "NS/NC",
        "Prefiro não responder",
        "Preferisco non rispondere",
        "Wil ik niet zeggen",
        "Vill inte uppge",
        "En halua sanoa",
        "не указано",
        "不愿透露",
        "回答しない",
        "무응답",
        "#N/A",
        "  unknown ",
        r"\N",
        "NaT",
        "#VALUE!",
        "#DIV/0!",
        "#REF!",
        "KA",
        "n. s.",
        "weiß nicht/keine Angabe",
        "(leer)",
        "(blank)",
        "Sans objet",
        "Not applicable",
        "UNK",
        "TBD",
        ".A",
        "no information",
        "Please select",
        "Bitte wählen",
        "-- select --",
    ],
)
def test_words_for_not_given_in_many_languages(cell):
    assert says_not_given(cell)


@pytest.mark.parametrize(
    "cell",
    [
        "none",
        "no",
        "Nan Goldin",
        "refuse collector",
        "other",
        "K",
        "Kansas",
        "not married",
        "0",
        "",
        "nat",
        "ka",
        "male/female",
        ".net",
        "n",
    ],
)
def test_words_that_are_answers(cell):
    assert not says_not_given(cell)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["1", "2", "DK"], ("DK",)),
        (["SE", "NO", "DK"], ()),
        (["m", "w", "KA"], ("KA",)),
        (["Male", "Female", "0"], ("0",)),
        (["Male", "Female", "99"], ("99",)),
        (["Male", "Female", "3"], ()),
        (["under 18", "18 to 30", "0"], ()),
        (["1,5", "2,5", "-99,00"], ("-99,00",)),
        (["1,5", "2,5", "3,0"], ()),
        (["M", "F", "NaT"], ("NaT",)),
    ],
)
def test_other_values_say_what_one_means(values, words):
    assert words_not_given("x", values) == words


def test_a_column_of_addresses_takes_no_time(write):
    n = 100_000
    nodes = "id,mail,g\n" + "".join(f"{i},a{i}@example.org,{'xy'[i % 2]}\n" for i in range(n))
    folder = write({"nodes.csv": nodes, "edges.csv": ring(100)})
    start = time.process_time()
    graph = load(folder)
    assert [a.name for a in graph.attributes] == ["g"] and time.process_time() - start < 6
