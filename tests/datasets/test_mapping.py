"""Guessing what the columns of two unknown tables are, and writing it down."""

import re
from dataclasses import replace

import numpy as np
import pytest

from uge_core.datasets import load
from uge_core.datasets.mapping import (
    ColumnValues,
    TableMap,
    Use,
    begin_mapping,
    card_text,
    codes_text,
    column_values,
    consistent_uses,
    guess_mapping,
    join_counts,
    mapping_folder,
    missing_codes,
    read_pair,
    readable_files,
    table_roles,
    with_columns,
    write_card,
    written_mapping,
)
from uge_core.datasets.proposal import propose
from uge_core.errors import DatasetMissing, GraphError

PEOPLE = "row;gender;years;age;handle;city\n" + "".join(
    f"{i};{['f', 'm', 'unknown'][i % 3]};{i % 7};{[0, *range(18, 70)][i % 53]};u{i:03};{'NSWE'[i % 4]}\n"
    for i in range(120)
)
FRIENDS = "when;strength;a;b\n" + "".join(f"{i % 9};{1 + i % 3};u{i:03};u{(i + 5) % 120:03}\n" for i in range(120))


@pytest.fixture
def pair(write):
    return read_pair(write({"people.csv": PEOPLE, "friends.csv": FRIENDS}), "friends.csv", "people.csv")


def test_ids_are_found_by_what_the_tables_share(pair):
    made = guess_mapping(pair)
    assert (made.source, made.target, made.id, made.weight, made.sides) == ("a", "b", "handle", "strength", "one")
    found = join_counts(pair, made)
    assert (found.ids, found.joined, found.orphans, found.lonely, found.repeated) == (120, 120, 0, 0, 0)


def test_columns_get_uses_codes_and_bins(pair):
    uses = {u.column: u for u in guess_mapping(pair).columns}
    assert list(uses) == ["row", "gender", "years", "age", "city"]
    assert uses["gender"] == Use("gender", "attribute", True, ("unknown",))
    assert uses["age"] == Use("age", "attribute", True, ("0",), "quantile:5")
    assert uses["row"].use == "feature" and not uses["row"].sensitive
    assert not uses["city"].sensitive
    assert column_values(pair, ["city"]) == {"city": ColumnValues(4, "N, S, W, E")}


def test_what_was_guessed_loads(pair, tmp_path):
    folder = tmp_path / "made"
    with pytest.raises(GraphError, match="no recognised layout"):
        load(folder)
    write_card(folder, guess_mapping(pair))
    graph = load(folder)
    assert (graph.layout, graph.num_nodes, graph.num_edges, graph.weighted) == ("dataset-yaml", 120, 120, True)
    assert graph.attribute("gender").labels == ("f", "m") and graph.attribute("gender").unknown.sum() == 40
    assert graph.attribute("age").num_values == 5 and graph.attribute("age").unknown.sum() == 3
    assert {c.name for c in graph.columns if c.detail.startswith("sensitive")} == {"gender", "age"}


def test_numbers_that_happen_to_be_ids_are_no_ends(write):
    nodes = "id,g\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(1, 31))
    edges = "weight,source,target\n" + "".join(
        f"{1 + i % 3},{1 + i % 30},{1 + (i * 3 + i // 9) % 30}\n" for i in range(30)
    )
    made = guess_mapping(read_pair(write({"n.tsv": nodes, "e.tsv": edges}), "e.tsv", "n.tsv"))
    assert (made.source, made.target, made.id, made.weight) == ("source", "target", "id", "weight")
    assert [u.sensitive for u in made.columns] == [True]  # where no name tells, the first attribute


def test_items_that_no_file_describes(write):
    people = "who,sex\n" + "".join(f"u{i},{'fm'[i % 2]}\n" for i in range(12))
    seen = "film,rating,user\n" + "".join(f"t{i % 7},{i % 5},u{i % 12}\n" for i in range(40))
    folder = write({"people.csv": people, "seen.csv": seen})
    pair = read_pair(folder, "seen.csv", "people.csv")
    made = guess_mapping(pair)
    assert (made.source, made.target, made.id, made.sides) == ("user", "film", "who", "items")
    assert join_counts(pair, made).ids == 12
    write_card(folder, made)
    assert (load(folder).num_users, load(folder).num_items) == (12, 7)


def test_a_column_that_tells_the_sides_apart(write):
    both = "id,kind,sex\n" + "".join(f"n{i},{'person' if i < 12 else 'film'},{'fm'[i % 2]}\n" for i in range(19))
    seen = "source,target\n" + "".join(f"n{i % 12},n{12 + i % 7}\n" for i in range(40))
    folder = write({"all.csv": both, "seen.csv": seen})
    pair = read_pair(folder, "seen.csv", "all.csv")
    made = guess_mapping(pair)
    assert (made.sides, made.side_column, made.users) == ("column", "kind", "person")
    write_card(folder, made)
    assert (load(folder).num_users, load(folder).num_items) == (12, 7)
    other = with_columns(pair, TableMap("seen.csv", "all.csv", "source", "target", "id"))
    assert [u.column for u in other.columns] == ["kind", "sex"]


def test_orphans_are_counted_and_shown(pair):
    found = join_counts(pair, TableMap("friends.csv", "people.csv", "a", "when", "handle"))
    assert (found.ids, found.joined, found.orphans, found.first) == (129, 120, 9, ("0", "1", "2"))
    found = join_counts(pair, TableMap("friends.csv", "people.csv", "a", "b", "city"))
    assert (found.joined, found.lonely, found.repeated) == (0, 120, 116)


def test_a_card_says_what_was_chosen(pair, tmp_path):
    uses = (
        Use("age", missing=missing_codes(" 0, -1 ,0"), bins="18, 35 50"),
        Use("years", "feature"),
        Use("city", "ignored"),
    )
    made = TableMap(
        "friends.csv",
        "people.csv",
        "a",
        "b",
        "handle",
        uses,
        weight="strength",
        directed=True,
        separator=";",
        name="my town",
        licence="CC0",
        origin="a survey: 2024",
    )
    text = card_text(made)
    for line in ("name: my town", "licence: CC0", "source: 'a survey: 2024'", "directed: true", "weight: strength"):
        assert line in text
    write_card(tmp_path / "made", made)
    graph = load(tmp_path / "made")
    assert graph.directed and graph.attribute("age").labels == ("18-34", "35-49", "50+")
    assert graph.feature_names == ("years",) and "licence CC0" in graph.messages[0].text


@pytest.mark.parametrize(("policy", "nodes", "edges"), [("drop", 120, 120), ("add", 121, 121)])
def test_what_is_done_about_unlisted_nodes_is_written_and_read_back(write, policy, nodes, edges):
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS + "1;1;u000;stranger\n"})
    pair = read_pair(folder, "friends.csv", "people.csv")
    made = guess_mapping(pair)
    assert made.unknown_nodes == "refuse" and "unknown_nodes" not in card_text(made)
    write_card(folder, replace(made, unknown_nodes=policy))
    assert f"\nunknown_nodes: {policy}\n" in (folder / "dataset.yaml").read_text()
    assert begin_mapping(pair, written_mapping(folder)).unknown_nodes == policy
    graph = load(folder)
    assert (graph.num_nodes, graph.num_edges) == (nodes, edges)


def test_a_card_of_someone_else_is_not_replaced(pair, tmp_path):
    card = tmp_path / "made" / "dataset.yaml"
    card.write_text("by hand")
    with pytest.raises(GraphError, match="is there already"):
        write_card(card.parent, guess_mapping(pair))
    assert card.read_text() == "by hand"
    write_card(card.parent, guess_mapping(pair), may_replace=True)
    assert load(card.parent).num_nodes == 120


@pytest.mark.parametrize("bins", ["quantile:1", "wide", "5, 3"])
def test_bins_that_mean_nothing_leave_no_file(pair, tmp_path, bins):
    made = TableMap("friends.csv", "people.csv", "a", "b", "handle", (Use("age", bins=bins),))
    with pytest.raises(GraphError, match="quantile"):
        write_card(tmp_path / "made", made)
    assert {p.name for p in (tmp_path / "made").iterdir()} == {"people.csv", "friends.csv"}


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ("0,1\n2,3\n", "may be the first row, or column numbers"),
        ("ab\n1\n", "one column|has one column"),
        (b"\x89PNG\0\0", "is not text"),
    ],
)
def test_what_is_no_table_is_said(write, edges, said):
    folder = write({"e.csv": edges, "n.csv": "id,g\n1,a\n2,b\n"})
    with pytest.raises(GraphError, match=said):
        guess_mapping(read_pair(folder, "e.csv", "n.csv"))


def test_files_that_a_mapping_may_name(write, tmp_path):
    folder = write({"people.csv": PEOPLE, "my_links.tsv.gz": FRIENDS, "notes.md": "x", "LICENSE.txt": "x"})
    assert readable_files(folder) == ("my_links.tsv.gz", "people.csv")
    assert mapping_folder(str(folder)) == mapping_folder(str(folder / "people.csv")) == folder.resolve()
    assert (
        mapping_folder(str(tmp_path)) is None and mapping_folder("sample:town") is None and mapping_folder("\0") is None
    )
    with pytest.raises(DatasetMissing, match="no such file"):
        read_pair(folder, "gone.csv", "people.csv")


def test_what_was_written_is_where_the_form_begins_again(pair, tmp_path):
    folder = tmp_path / "made"
    assert written_mapping(folder) is None and begin_mapping(pair, None) == guess_mapping(pair)
    uses = (
        Use("row", "ignored"),
        Use("gender", "attribute", True, ("unknown",)),
        Use("years", "feature"),
        Use("age", "attribute", False, ("0", "-1"), "18, 35, 50"),
        Use("city", "attribute", True),
    )
    made = TableMap(
        "friends.csv",
        "people.csv",
        "b",
        "a",
        "handle",
        uses,
        weight="strength",
        directed=True,
        separator=",",
        encoding="iso8859-1",
        name="town",
        licence="CC0",
        origin="a survey",
    )
    write_card(folder, made)
    assert begin_mapping(pair, written_mapping(folder)) == made
    other = read_pair(folder, "people.csv", "friends.csv")
    assert begin_mapping(other, written_mapping(folder)) == guess_mapping(other)
    (folder / "dataset.yaml").write_text("edges: friends.csv\nnodes: people.csv\n")
    assert written_mapping(folder) is None


def test_what_a_card_says_comes_back_as_it_was(pair, tmp_path):
    uses = (
        Use("age", missing=("-1", 'n/a, "refused"'), bins="1234567, 12345678.25"),
        Use("city", missing=missing_codes(codes_text(("NA", "n/a, refused")))),
    )
    made = TableMap("friends.csv", "people.csv", "a", "b", "handle", uses, weight="strength", separator=";")
    write_card(tmp_path / "made", made)
    back = {u.column: u for u in written_mapping(tmp_path / "made").columns}
    assert (back["age"].bins, back["age"].missing) == (uses[0].bins, uses[0].missing)
    assert missing_codes(codes_text(back["age"].missing)) == uses[0].missing
    assert back["city"].missing == ("NA", "n/a, refused")


@pytest.mark.parametrize("said", [False, True])
def test_what_is_said_of_the_first_line_is_read_by_and_written(said, write):
    # Both readings are possible: people a and b, or the names of columns.
    rows = "".join(f"{c},{d}\n" for c, d in ["ab", "bc", "cd", "da", "ac"])
    folder = write({"links.csv": rows, "who.csv": "a,x\nb,y\nc,x\nd,y\n"})
    found = read_pair(folder, "links.csv", "who.csv", edges_header=said, nodes_header=said)
    assert [len(found.edges), len(found.nodes)] == ([4, 3] if said else [5, 4])
    made = replace(guess_mapping(found), edges_header=said, nodes_header=said)
    assert made.edges_header is said
    write_card(folder, made)
    assert written_mapping(folder) == made
    if said:
        with pytest.raises(GraphError, match="2 edges name a node that does not exist"):  # a's row is the header
            load(folder)
    else:
        graph = load(folder)
        assert (graph.num_nodes, graph.num_edges) == (4, 5)


def test_nothing_is_said_of_the_first_line_of_parquet():
    assert "header" not in card_text(TableMap("links.csv", "who.csv", "1", "2", "1"))
    made = TableMap("links.parquet", "who.parquet", "a", "b", "id", edges_header=False, nodes_header=True)
    assert "header" not in card_text(made)


SHARES = [round(0.05 + i * 0.02, 2) for i in range(12)]


def measured(extra: str, cells: list[object]) -> str:
    """People with a city, whole-number codes, and one more column."""
    rows = (
        f"u{i:03};{'NSWE'[i % 4]};{i % 7};{'' if i % 10 == 9 else float(i % 3)};{cells[i % len(cells)]}\n"
        for i in range(120)
    )
    return f"handle;city;code;wave;{extra}\n" + "".join(rows)


@pytest.mark.parametrize(
    ("cells", "use"),
    [
        (SHARES, "feature"),
        ([0.5, 1, 2], "feature"),
        ([*SHARES, "NA"], "feature"),
        ([str(x).replace(".", ",") + "1" for x in SHARES], "ignored"),
        ([1e-05, 2e-05, 3e-05], "feature"),
    ],
    ids=["shares", "one decimal", "with words", "decimal comma", "exponents"],
)
def test_decimal_numbers_are_never_guessed_as_attributes(write, cells, use):
    folder = write({"people.csv": measured("clustering", cells), "friends.csv": FRIENDS})
    pair = read_pair(folder, "friends.csv", "people.csv")
    made = guess_mapping(pair)
    uses = {u.column: u for u in made.columns}
    assert (uses["clustering"].use, uses["clustering"].sensitive, uses["clustering"].bins) == (use, False, "")
    # 2.0 is a whole number, as pandas writes them beside empty cells
    assert (uses["city"].use, uses["code"].use, uses["wave"].use) == ("attribute", "attribute", "attribute")
    proposed = propose(folder)
    assert proposed.made is not None and {u.column: u for u in proposed.made.columns}["clustering"].use == use
    (doubt,) = [d for d in proposed.doubts if "decimal numbers" in d]
    assert "clustering: {bins: quantile:5}" in doubt
    # and where no dataset.yaml says anything, the layout of two tables
    plain = write(
        {
            "nodes.csv": measured("clustering", cells).replace("handle", "id"),
            "edges.csv": FRIENDS.replace("a;b", "source;target"),
        }
    )
    graph = load(plain)
    assert [a.name for a in graph.attributes] == ["city", "code", "wave"]
    (note,) = [m for m in graph.messages if m.code == "decimal-numbers"]
    assert (note.level, note.examples) == ("note", ("clustering",)) and "bins in dataset.yaml" in note.remedy


def test_a_decimal_age_is_guessed_in_bins(write):
    folder = write({"people.csv": measured("age", [18.5 + i for i in range(40)]), "friends.csv": FRIENDS})
    uses = {u.column: u for u in guess_mapping(read_pair(folder, "friends.csv", "people.csv")).columns}
    assert uses["age"] == Use("age", "attribute", True, (), "quantile:5")


@pytest.mark.parametrize("digits", [1, 2, 4, 16])
@pytest.mark.parametrize("rule", ["quantile:3", "quantile:5", "quantile:10"])
def test_bins_of_decimal_numbers_read_well_and_part_people_alike(write, digits, rule):
    numbers = np.round(np.random.default_rng(digits).random(120) * 0.4, digits)
    cells = [str(x) for x in numbers]
    folder = write({"people.csv": measured("share", cells), "friends.csv": FRIENDS})
    made = guess_mapping(read_pair(folder, "friends.csv", "people.csv"))
    uses = tuple(replace(u, use="attribute", bins=rule) if u.column == "share" else u for u in made.columns)
    write_card(folder, replace(made, columns=uses))
    share = load(folder).attribute("share")
    count = int(rule.partition(":")[2])
    cuts = np.unique(np.quantile(numbers, np.arange(1, count) / count))
    assert share.codes.tolist() == np.searchsorted(cuts[cuts > numbers.min()], numbers, side="right").tolist()
    assert all(len(number) <= 6 for label in share.labels for number in re.findall(r"[\d.]+", label)), share.labels


def test_what_is_sensitive_is_an_attribute(pair):
    known = {
        "a": ColumnValues(3, "x"),
        "b": ColumnValues(900, "0.1", "quantile:5", decimal=True),
        "c": ColumnValues(900, "t1"),
    }
    before = (Use("a", "ignored"), Use("b", "feature"), Use("c", "ignored"))
    ticked = tuple(replace(u, sensitive=True) for u in before)
    uses, said = consistent_uses(before, ticked, known)
    assert [(u.use, u.sensitive, u.bins) for u in uses] == [
        ("attribute", True, ""),
        ("attribute", True, "quantile:5"),
        ("attribute", True, ""),
    ]
    assert "a is an attribute now" in said[0] and "decimal numbers of b" in said[2] and "at most 200" in said[4]
    # what was typed last counts: as a feature it is sensitive no more
    again, said = consistent_uses(uses, (replace(uses[0], use="feature"), *uses[1:]), known)
    assert (again[0].use, again[0].sensitive) == ("feature", False) and "no longer sensitive" in said[0]
    assert consistent_uses(again, again, known) == (again, ())


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("edges", "nodes"), [("ties.csv", "survey.csv"), ("data.csv", "2-data.csv"), ("nodes.csv", "edges.csv")]
)
def test_roles_are_by_what_is_in_the_files(write, edges, nodes, swapped):
    people = "person,region\n" + "".join(f"{i},{'NS'[i % 2]}\n" for i in range(80))
    ties = "a,b\n" + "".join(f"{i},{(i * 7 + 3) % 80}\n" for i in range(80))
    folder = write({edges: ties, nodes: people})
    assert table_roles(folder, *((nodes, edges) if swapped else (edges, nodes))) == (edges, nodes)


MOVIES = "user,movie\n" + "".join(f"u{i % 60},m{(i * 7) % 25}\n" for i in range(240))
MATCHES = "user,best_friend,city\n" + "".join(f"u{i},u{(i * 7 + 3) % 60},{'ABC'[i % 3]}\n" for i in range(60))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    "people",
    [
        MATCHES,
        MATCHES + "u7,u52,B\n",  # a row twice
        "user,best_friend,city\n" + "".join(f"u{i},u{i * i % 17},{'ABC'[i % 3]}\n" for i in range(60)),
        "user,age\n" + "".join(f"u{i},{20 + i % 9}\n" for i in range(60)),
    ],
    ids=["friends", "row twice", "popular friends", "no friends"],
)
def test_users_and_items_are_no_less_a_graph_than_whom_people_name(write, people, swapped):
    folder = write({"one.csv": MOVIES, "two.csv": people})
    given = ("two.csv", "one.csv") if swapped else ("one.csv", "two.csv")
    assert table_roles(folder, *given) == ("one.csv", "two.csv")


@pytest.mark.parametrize("city", [True, False])
@pytest.mark.parametrize("numbers", [True, False])
def test_files_that_fit_either_way_stay_where_they_were_dropped(write, city, numbers):
    """Everybody saw one movie and names one friend: each file has ids of its own in each row."""
    who, what = ("", "") if numbers else ("u", "m")
    seen = "user,movie\n" + "".join(f"{who}{i},{what}{1000 + i * 7 % 25}\n" for i in range(60))
    told = [f"{who}{i},{who}{(i * 7 + 3) % 60}" + f",{'ABC'[i % 3]}" * city for i in range(60)]
    friends = "user,best_friend" + ",city" * city + "\n" + "\n".join(told) + "\n"
    folder = write({"seen.csv": seen, "friends.csv": friends})
    # Nothing but ids says nothing of anybody: then the friends are the edges.
    first = "seen.csv" if city else "friends.csv"
    assert table_roles(folder, "seen.csv", "friends.csv")[0] == first
    assert table_roles(folder, "friends.csv", "seen.csv") == ("friends.csv", "seen.csv")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("weight", ["", ",weight", ",since"])
@pytest.mark.parametrize("repeats", [True, False])
def test_two_columns_of_ids_are_edges_whether_or_not_they_repeat(write, weight, repeats, swapped):
    people = "person,region\n" + "".join(f"p{i},{'NSWE'[i % 4]}\n" for i in range(80))
    rows = [(i % 40 if repeats else i, i * i * 7 % 31 + 40 * repeats) for i in range(80)]
    ties = f"a,b{weight}\n" + "".join(f"p{a},p{b}" + f",{2000 + a}" * bool(weight) + "\n" for a, b in rows)
    folder = write({"one.csv": ties, "two.csv": people})
    given = ("two.csv", "one.csv") if swapped else ("one.csv", "two.csv")
    assert table_roles(folder, *given) == ("one.csv", "two.csv")


def test_roles_stay_as_given_where_nothing_says_otherwise(write):
    folder = write({"a.csv": "x,y\n1,2\n3,4\n", "b.csv": "v,w\n5,6\n7,8\n", "c.csv": "one\n1\n2\n", "d.csv": ""})
    assert table_roles(folder, "b.csv", "a.csv") == ("b.csv", "a.csv")
    assert table_roles(folder, "d.csv", "a.csv") == ("d.csv", "a.csv")
    assert table_roles(folder, "c.csv", "a.csv") == ("a.csv", "c.csv")
