"""Rows that are no node and no edge: what is certain is left out and said, what is likely is refused with its line."""

import pandas as pd
import pytest

from uge_core.datasets import load
from uge_core.datasets.stray_rows import refuse_odd_ids
from uge_core.datasets.tables import Table, read_table
from uge_core.errors import GraphError

N = 30
NODES = [f"{i},{'FM'[i % 2]},{20 + i * 7 % 40}" for i in range(N)]
EDGES = [f"{i},{(i + 3) % N}" for i in range(N)]
NAMES = [f"{'abcdefghij'[i // 10]}{'klmnopqrst'[i % 10]},{'FM'[i % 2]},{20 + i * 7 % 40}" for i in range(N)]


def table(*rows: str, head: str = "id,gender,age") -> str:
    return "\n".join([head, *rows]) + "\n"


def people(*rows: str, head: str = "id,gender,age") -> dict[str, str]:
    return {"nodes.csv": table(*rows, head=head), "edges.csv": table(*EDGES, head="source,target")}


@pytest.mark.parametrize("at", [5, N])
@pytest.mark.parametrize("again", ["id,gender,age", "ID,Gender,AGE"])
def test_a_repeated_header_is_nobody(write, at, again):
    files = people(*NODES[:at], again, *NODES[at:])
    files["edges.csv"] = table(*EDGES[:at], "source,target", *EDGES[at:], head="source,target")
    graph = load(write(files))
    assert (graph.num_nodes, graph.num_edges) == (N, N) and graph.attribute("gender").labels == ("F", "M")
    said = [m.text for m in graph.messages if m.code == "repeated-header"]
    assert len(said) == 2 and f"nodes.csv: 1 row that repeats the header left out, first: line {at + 2} (" in said[0]


def test_letters_that_are_ids_and_values_like_a_name_stay(write):
    rows = table("a,b", "b,c", "c,a", head="a,b")
    assert len(read_table(write({"e.csv": rows}) / "e.csv", columns=["a", "b"])) == 3
    assert len(read_table(write({"n.csv": table("ego,x", "name,y", "name,name", head="name,kind")}) / "n.csv")) == 3


@pytest.mark.parametrize("line", ["(30 rows affected)", "(30 rows)", "(30 Zeilen)", "30 rows in set (0.00 sec)"])
def test_the_last_line_of_a_database_is_nobody(write, line):
    files = people(*NODES, "", line)
    files["edges.csv"] += f"{line}\n"
    graph = load(write(files))
    assert (graph.num_nodes, graph.num_edges) == (N, N)
    assert [m.code for m in graph.messages].count("footer-rows") == 2


@pytest.mark.parametrize("rows", [NODES, NAMES])
@pytest.mark.parametrize(
    "total", ["Total,30,", "Gesamt,,1165", "Summe:,,", "Total général,30,", "Grand Total,,38.83333333", "TOTAL,,30"]
)
def test_totals_are_refused(write, rows, total):
    with pytest.raises(GraphError, match=r"nodes.csv: 1 row of totals, first: line 32 \('"):
        read_table(write({"nodes.csv": table(*rows, total)}) / "nodes.csv")


@pytest.mark.parametrize("word", ["Mean", "SD", "Durchschnitt", "Moyenne", "N", "25%", "Class A Total"])
def test_statistics_among_numbers_are_refused(write, word):
    with pytest.raises(GraphError, match=r"nodes.csv: 2 rows of totals, first: line 32 \('.*line 33 \('Max'"):
        load(write(people(*NODES, f"{word},,34.5", "Max,,59")))


def test_totals_of_edges_and_between_rows_are_refused(write):
    files = people(*NODES)
    for rows, line in (([*EDGES, "Total,30"], 32), ([*EDGES[:20], "Subtotal,20", *EDGES[20:]], 22)):
        with pytest.raises(GraphError, match=rf"edges.csv: 1 row of totals, first: line {line} \("):
            load(write(files | {"edges.csv": table(*rows, head="source,target")}))


@pytest.mark.parametrize("row", ["Max,M,31", "Total,F,25", "Sum Wong,F,", "N,M,", "Mean,M,", "Anna: the elder,F,30"])
def test_people_with_such_names_stay(write, row):
    assert len(read_table(write({"nodes.csv": table(*NAMES, row)}) / "nodes.csv")) == N + 1


@pytest.mark.parametrize("rows", [NODES, NAMES])
@pytest.mark.parametrize(
    "note", ["Source: survey of 2024", "* these left school", "Quelle,,", "made by hand in June 2024"]
)
def test_notes_below_are_refused(write, rows, note):
    with pytest.raises(GraphError, match=r"nodes.csv: line 33 \('.* is a note below the table; remove it"):
        read_table(write({"nodes.csv": table(*rows, "", note)}) / "nodes.csv")


@pytest.mark.parametrize(
    "rows", [["# exported, 2024", *NODES], [*NODES[:9], "# class 2", *NODES[9:]], ["#3,M,30", *NODES]]
)
def test_comments_below_the_header_are_refused(write, rows):
    line = next(i for i, row in enumerate(rows, 2) if row.startswith("#"))
    with pytest.raises(GraphError, match=rf"nodes.csv: line {line} \('#.* begins like a comment"):
        load(write(people(*rows)))


def test_tags_are_no_comments(write):
    rows = [f"{('# 1 fan', 'good', 'bad')[i % 3]},{i}" for i in range(9)]
    assert len(read_table(write({"n.csv": table(*rows, head="said,nr")}) / "n.csv")) == 9
    rows = ["music,a", "#sport,b", "#art,a", "news,b", "film,a", "books,b"]
    assert len(read_table(write({"n.csv": table(*rows, head="tag,kind")}) / "n.csv")) == 6


@pytest.mark.parametrize(
    ("head", "row", "rows"),
    [
        ("Q1,Q2,Q3", "What is your number?,What is your gender?,How old are you?", NODES),
        ("Q1,Q2,Q3", "What is your name?,What is your gender?,How old are you?", NAMES),
        ("id,gender,height", "-,M/F,cm", NODES),
        ("id,gender,height", "number,M/F,years", NODES),
        ("School:,Goethe,", "id,gender,age", NODES),
        ("Class survey,Ms Smith,2024", "id,gender,age", NODES),
        ("Class survey,Ms Smith,2024", "id,gender,age", NAMES),
    ],
)
def test_rows_between_the_header_and_people_are_refused(write, head, row, rows):
    with pytest.raises(GraphError, match=r"nodes.csv: line 2 \('.* is unlike the rows below; remove it if"):
        load(write(people(row, *rows, head=head)))


@pytest.mark.parametrize(
    "row", ["anna,M,31", "anna,diverse,31", "99,unknown,31", "99,unknown,", "99,diverse,?", "anna,,"]
)
def test_people_unlike_others_stay(write, row):
    files = people(row, *NODES, row.replace("anna", "bob").replace("99", "98"))
    assert load(write(files)).num_nodes == N + 2


def test_a_title_without_other_cells_is_no_header(write):
    with pytest.raises(GraphError, match="line 1 has 2 columns without a name; name them, or remove the lines above"):
        load(write(people("id,gender,age", *NODES, head="Class survey 2024,,")))


def test_two_lines_of_a_title_are_named(write):
    with pytest.raises(GraphError, match=r"line 2 \('Teacher:', 'Smith'.*line 3 \('id', 'gender', 'age'\) are unlike"):
        load(write(people("Teacher:,Smith,", "id,gender,age", *NODES, head="School:,Goethe,")))


@pytest.mark.parametrize(
    ("ids", "odd"),
    [
        ([*map(str, range(N)), "Note"], "line 32 ('Note')"),
        ([*(f"P{i:02}" for i in range(N)), "end"], "line 32 ('end')"),
        ([*(row.split(",")[0] for row in NAMES), "30"], "line 32 ('30')"),
    ],
)
def test_an_id_of_another_kind_is_a_node_where_an_edge_names_it(ids, odd):
    nodes = Table("n.csv", pd.DataFrame({"id": ids}, index=range(2, len(ids) + 2), dtype="str"))
    with pytest.raises(GraphError) as error:
        refuse_odd_ids(nodes, "id", ["1", "ak"])
    assert f"n.csv: 1 row with an id of another kind than the others in column 'id', first: {odd}" in str(error.value)
    refuse_odd_ids(nodes, "id", ids[-1:])


@pytest.mark.parametrize(
    "ids", [["anna", "17", "bob", "3"] * 1, [*map(str, range(N)), *(f"T{i}" for i in range(6))], ["a", "b"]]
)
def test_mixed_ids_are_no_fault(ids):
    refuse_odd_ids(Table("n.csv", pd.DataFrame({"id": ids}, dtype="str")), "id", [])
