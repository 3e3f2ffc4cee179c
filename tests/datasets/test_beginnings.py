"""How text tables begin and what marks do to them: comments, no header, separators, quotation marks, survey rows."""

import gzip
import itertools
import random
import re
import time
from dataclasses import replace

import pandas as pd
import pytest

from uge_core.datasets import load
from uge_core.datasets.mapping import begin_mapping, guess_mapping, read_pair, write_card, written_mapping
from uge_core.datasets.tables import Table, read_lines, read_table, refuse_lost_digits
from uge_core.errors import GraphError

N = 40
NODES = "id,region\n" + "".join(f"{i},{'NS'[i // 2 % 2]}\n" for i in range(N))
PAIRS = [(i, (i + 3) % N) for i in range(N)]
EDGES = "source,target\n" + "".join(f"{a},{b}\n" for a, b in PAIRS)


def lines(sep: str, head: str = "") -> str:
    return head + "".join(f"{a}{sep}{b}\n" for a, b in PAIRS)


def message(graph, code: str):
    (found,) = [m for m in graph.messages if m.code == code]
    return found


def right(graph, first: int = 0) -> bool:
    """Whether a graph is the one of `NODES` and `EDGES`, its ids counted from `first`."""
    links = {frozenset(graph.ids(list(e))) for e in graph.edges.T}
    wanted = {frozenset((str(a + first), str(b + first))) for a, b in PAIRS}
    return graph.ids(slice(None)) == [str(i + first) for i in range(N)] and links == wanted


@pytest.mark.parametrize("separator", ["' '", "blank"])
@pytest.mark.parametrize("between", [" ", "   ", " \t ", "\t"])
def test_blanks_separate(write, separator, between):
    people = NODES.replace(",", between)
    card = f"edges: {{file: l.txt, source: a, target: b}}\nnodes: {{file: p.txt, id: id}}\nseparator: {separator}\n"
    graph = load(write({"dataset.yaml": card, "l.txt": lines(between, f"a{between}b\n"), "p.txt": people}))
    assert right(graph) and graph.attribute("region").labels == ("N", "S")


def test_blanks_around_a_line_and_quoted_cells(write):
    path = write({"p.txt": ' id  town\n  1 "New  York" \n\n2   Lima\n'}) / "p.txt"
    table = read_table(path, sep=" ")
    assert table.frame.to_numpy().tolist() == [["1", "New  York"], ["2", "Lima"]]


def test_an_empty_cell_between_blanks_cannot_be_seen(write):
    with pytest.raises(GraphError, match=r"p.txt: 1 row with fewer than the 3 fields expected, first: line 3; blanks"):
        read_table(write({"p.txt": "id age town\n1 20 Lima\n2 Lima\n3 30 Oslo\n"}) / "p.txt", sep=" ")


def test_a_long_line_between_blanks_is_named(write):
    with pytest.raises(GraphError, match=r"p.txt: line 3 has more than the 2 fields"):
        read_table(write({"p.txt": "id town\n1 Lima\n2 New York\n"}) / "p.txt", sep=" ")


def test_the_form_writes_blanks_and_reads_them_again(write):
    folder = write({"l.txt": lines(" ", "a b\n"), "p.txt": NODES.replace(",", " ")})
    pair = read_pair(folder, "l.txt", "p.txt", " ")
    made = replace(guess_mapping(pair), separator=" ")
    text = write_card(folder, made).read_text()
    assert "separator: blank" in text
    again = written_mapping(folder)
    assert again is not None and again.separator == " " and begin_mapping(pair, again) == made
    assert right(load(folder))


def test_a_mapping_of_other_columns_is_not_the_forms(write):
    card = "edges: {file: e.csv, source: a, target: b, columns: [a, b]}\nnodes: {file: n.csv, id: id}\n"
    assert written_mapping(write({"dataset.yaml": card})) is None


SNAP = "# Undirected graph: town.txt\n# Friends\n# Nodes: 40 Edges: 40\n# FromNodeId\tToNodeId\n"
KONECT = "% sym unweighted\n% 40 40 40\n"


@pytest.mark.parametrize(
    ("text", "comments", "names"),
    [
        (lines("\t", SNAP), 4, ["FromNodeId", "ToNodeId"]),
        (lines(" ", KONECT), 2, ["1", "2"]),
        (lines("\t", KONECT), 2, ["1", "2"]),
        (lines(",", "// made by hand\n\n// yes\n"), 2, ["1", "2"]),
        (lines(",", "# made by hand\nsource,target\n"), 1, ["source", "target"]),
        (lines(",", "#source,target\n"), 1, ["source", "target"]),
        (lines(",", "\ufeff# made by hand\r\nsource,target\n"), 1, ["source", "target"]),
        (lines(",", "# source,target\nsource,target\n"), 1, ["source", "target"]),
        (lines(",", "# it's \"quoted\nsource,target\n"), 1, ["source", "target"]),
        (lines(" ", "#\n# a b\n"), 2, ["a", "b"]),
        (lines(" ", "% asym positive\n").replace("\n", " \n"), 1, ["1", "2"]),
        (lines("\t", "".join(f"# line {i} of a long licence\n" for i in range(5000))), 5000, ["1", "2"]),
    ],
)
@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize("zipped", ["", ".gz"])
def test_comments_before_the_data(write, text, comments, names, described, zipped):
    files = {f"edges.csv{zipped}": text, "nodes.csv": NODES}
    graph = load(write(files | ({"dataset.yaml": "edges: edges.csv\nnodes: nodes.csv\n"} if described else {})))
    found = message(graph, "comment-lines")
    assert (found.level, found.count) == ("note", comments) and found.text.startswith(f"edges.csv{zipped}: ")
    assert [c.name for c in graph.columns if c.role in ("source", "target")] == names
    assert ("names the columns" in found.text) == (names[0] in ("FromNodeId", "a") or text.startswith("#source"))
    assert right(graph)


def test_later_lines_are_never_comments(write):
    nodes = "tag,region\n#a,N\n#b,S\n%c,N\n//d,S\n"
    edges = "source,target\n#a,#b\n%c,//d\n"
    graph = load(write({"nodes.csv": nodes, "edges.csv": edges}))
    assert graph.ids(slice(None)) == ["#a", "#b", "%c", "//d"] and graph.num_edges == 2
    assert not [m for m in graph.messages if m.code == "comment-lines"]


@pytest.mark.parametrize("nodes", ["#a,N\n#b,S\nc,N\nd,S\n", "#a,N\nb,S\nc,N\n"])
def test_rows_that_begin_like_comments_are_refused(write, nodes):
    with pytest.raises(GraphError, match=r"line 1 \('#a,N'\) begins like a comment, but is like the rows"):
        load(write({"nodes.csv": nodes, "edges.csv": "source,target\nb,c\n"}))
    graph = load(write({"nodes.csv": "id,region\n" + nodes, "edges.csv": "source,target\n#a,c\n"}))
    assert graph.ids([0]) == ["#a"]


def test_nothing_but_comments(write):
    with pytest.raises(GraphError, match=r"edges.csv: "):
        load(write({"nodes.csv": NODES, "edges.csv": "# a\n# b\n"}))


def test_a_matrix_market_file_is_no_table(write):
    text = lines(" ", "%%MatrixMarket matrix coordinate pattern symmetric\n40 40 40\n")
    with pytest.raises(
        GraphError, match=r"edges.csv: is a Matrix Market file, no table; rename it so that it ends in .mtx"
    ):
        load(write({"nodes.csv": NODES, "edges.csv": text}))


@pytest.mark.parametrize("said", ["sep=;\n", "SEP=;\r\n", '"sep=;"\n', "\ufeffsep=;\n", "sep=;;\n"])
def test_a_line_that_says_the_separator(write, said):
    nodes, edges = (said + text.replace(",", ";") for text in (NODES, EDGES))
    graph = load(write({"nodes.csv": nodes, "edges.csv": edges}))
    assert right(graph) and graph.attribute("region").labels == ("N", "S")


def test_a_said_separator_holds_whatever_stands_in_the_lines(write):
    nodes = "sep=|\n" + NODES.replace(",", "|").replace("region", "region, country, town")
    graph = load(write({"nodes.csv": nodes, "edges.csv": "sep=\t\n" + EDGES.replace(",", "\t")}))
    assert graph.num_nodes == N and graph.num_edges == 40
    with pytest.raises(GraphError, match="line 44 has more than the 2 fields"):
        load(write({"nodes.csv": nodes + "\n98|a|b\n", "edges.csv": EDGES}))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_header_with_a_line_break(write, end):
    nodes = NODES.replace("id,region\n", f'id,"Region{end}(as you say it)"\n')
    graph = load(write({"nodes.csv": nodes, "edges.csv": EDGES.replace("source", '"sou\nrce"')}))
    assert [a.name for a in graph.attributes] == ["Region (as you say it)"]
    assert right(graph)
    with pytest.raises(GraphError, match="line 5 has more than the 2 fields"):
        load(write({"nodes.csv": nodes.replace("\n2,S", "\n2,S,x"), "edges.csv": EDGES}))


TITLES = "source\ttarget\ttitle\n" + "".join(f"{a}\t{b}\tplain\n" for a, b in PAIRS)


def marked(*at: int, mark: str = '"Heroes live') -> str:
    rows = TITLES.splitlines()
    for i, line in enumerate(at):
        rows[line - 1] = rows[line - 1].replace("plain", mark if i % 2 == 0 else 'end"')
    return "\n".join(rows) + "\n"


def test_a_mark_opened_in_the_header_swallows_no_rows(write):
    nodes = NODES.replace("id,region", 'id,"region').replace("\n9,N", '\n9,N"')
    with pytest.raises(GraphError, match=r"nodes.csv: line 1: a quotation mark is opened and closed only in line 11"):
        load(write({"nodes.csv": nodes, "edges.csv": EDGES}))


@pytest.mark.parametrize("at", [(12, 32), (12, 13), (3, 5)])
def test_a_mark_closed_further_down_swallows_no_rows(write, at):
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": NODES, "edges.csv": marked(*at)}))
    begins = f"edges.csv: line {at[0]}: a quotation mark is opened and closed only in line {at[1]}"
    assert str(error.value).startswith(begins)
    mended = marked(*at).replace('"Heroes live', '"""Heroes live"').replace('end"', '"end"""')
    assert load(write({"edges.csv": mended})).num_edges == 40


def test_a_mark_in_the_first_column_swallows_no_rows(write):
    nodes = NODES.replace("\n7,", '\n"7,').replace("\n8,S", '\n8",S').replace("\n8,N", '\n8",N')
    with pytest.raises(GraphError, match=r"nodes.csv: line 9: a quotation mark is opened and closed only in line 10"):
        load(write({"nodes.csv": nodes, "edges.csv": EDGES}))


def test_a_mark_that_is_never_closed_is_named(write):
    with pytest.raises(GraphError, match=r"edges.csv: line 12: a quotation mark is opened and never closed"):
        load(write({"nodes.csv": NODES, "edges.csv": marked(12)}))


@pytest.mark.parametrize(
    "cell",
    [
        "12 High St\nLondon",
        "12 High St,\nLondon",
        "I like cats,\ndogs, birds\nand more, and so on\n\nYours, me",
        "a\n\n\n\n\nb",
    ],
)
def test_cells_with_line_breaks_are_read(write, cell):
    nodes = "id,about,region\n" + "".join(f'{i},"{cell}",{"NS"[i // 2 % 2]}\n' for i in range(N))
    graph = load(write({"nodes.csv": nodes, "edges.csv": EDGES}))
    assert right(graph) and graph.attribute("region").labels == ("N", "S")


@pytest.mark.parametrize(
    "cell", [r'"san \"x\"; usa"', r'"san \"x\" usa"', r'"the \"x\""', r'"\"x\" usa"', r'"\"x\"; usa"']
)
def test_marks_escaped_by_backslashes_are_refused_by_name(write, cell):
    nodes = NODES.replace(",", ";").replace("id;region", '"id";"region"').replace("\n5;N", f"\n5;{cell}")
    with pytest.raises(GraphError) as error:
        load(write({"nodes.csv": nodes, "edges.csv": EDGES}))
    assert str(error.value).startswith("nodes.csv: line 7: quotation marks inside cells are escaped by a backslash")
    graph = load(write({"nodes.csv": nodes.replace(r"\"", '""')}))
    assert "x" in graph.attribute("region").labels[-1] + graph.attribute("region").labels[0]


def test_backslashes_that_escape_nothing_stay(write):
    nodes = "id\tregion\n" + "".join(
        f"{i}\t{['C:/dir', 'say ' + chr(92) + chr(34) + 'hi', 'N'][i % 3]}\n" for i in range(N)
    )
    assert load(write({"nodes.csv": nodes, "edges.csv": EDGES})).attribute("region").labels == (
        "C:/dir",
        "N",
        r"say \"hi",
    )


# Separators.


@pytest.mark.parametrize(
    "nodes",
    [
        "id;name, first, second;region\n" + "".join(f"{i};Al, B, C{i};{'NS'[i // 2 % 2]}\n" for i in range(N)),
        "id;lat,lon,height;region\n" + "".join(f"{i};48,2;{'NS'[i // 2 % 2]}\n" for i in range(N)),
        "id\tname (last, first, middle)\tregion\n"
        + "".join(f"{i}\tDoe, J, Jr\t{'NS'[i // 2 % 2]}\n" for i in range(N)),
        "id, name; also, region\n" + "".join(f"{i}, x; y, {'NS'[i // 2 % 2]}\n" for i in range(N)),
        'id,"a;b;c;d",region\n' + "".join(f"{i},x,{'NS'[i // 2 % 2]}\n" for i in range(N)),
    ],
)
def test_all_lines_decide_what_separates(write, nodes):
    graph = load(write({"nodes.csv": nodes, "edges.csv": EDGES}))
    assert right(graph) and graph.attribute("region").labels == ("N", "S")


@pytest.mark.parametrize(
    ("sep", "words"), [("|", r"separator: '\|'"), (" | ", r"separator: '\|'"), ("^", "sep=\\^ as"), ("::", "MovieLens")]
)
def test_other_separators_are_named(write, sep, words):
    files = {"nodes.csv": NODES.replace(",", sep), "edges.csv": EDGES.replace(",", sep)}
    with pytest.raises(GraphError, match=words):
        load(write(files))
    if "|" in sep:
        card = "edges: edges.csv\nnodes: nodes.csv\nseparator: '|'\n"
        assert right(load(write(files | {"dataset.yaml": card})))
    if sep == "^":
        assert right(load(write({name: f"sep=^\n{text}" for name, text in files.items()})))


@pytest.mark.parametrize(
    "text",
    [
        " id | region \n----+--------\n  1 | N\n  2 | S\n(2 rows)\n",
        "+----+--------+\n| id | region |\n+----+--------+\n|  1 | N      |\n+----+--------+\n",
        "| id | region |\n|---|---|\n| 1 | N |\n",
        "| id | region |\n| 1 | N |\n",
        "id,region\n--,------\n1,N\n2,S\n",
    ],
)
def test_drawn_tables_are_refused(write, text):
    with pytest.raises(GraphError, match=r"nodes.csv: line [12] \(.* is drawn, .* save the table as CSV"):
        load(write({"nodes.csv": text, "edges.csv": EDGES}))


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (
            "id,name,region\n" + "".join(f"{i},Doe, J,N\n" for i in range(N)),
            "put cells that hold the separator into quot",
        ),
        ("People of 2024\n" + NODES, r"remove line 1 \('People of 2024'\) if it is a title"),
        ("People of 2024\n" + NODES.replace(",", ";"), r"remove line 1 \('People of 2024'\) if it is a title"),
        ("region,age\n" + "".join(f"{i},N,{i}\n" for i in range(N)), "row.names=FALSE"),
    ],
)
def test_a_header_shorter_than_the_rows_is_explained(write, nodes, words):
    with pytest.raises(GraphError, match=f"nodes.csv: the header names [123] columns?, but each line below .*{words}"):
        load(write({"nodes.csv": nodes, "edges.csv": EDGES}))


@pytest.mark.parametrize("of", ["{}", "p{}"])
def test_lists_of_neighbours_are_named(write, of):
    near = {i: [of.format(j % N + 5) for j in range(i, i + 3 + i % 4)] for i in range(N)}
    with pytest.raises(
        GraphError, match=r"edges.csv: its lines have unequal numbers of cells, as in a list of everybody"
    ):
        load(write({"nodes.csv": NODES, "edges.csv": "".join(",".join(row) + "\n" for row in near.values())}))


@pytest.mark.parametrize(
    "cell", ["7.65612E+16", "7E+11", "1.152921504606847e+18", "1152921504606846976.0", "7,65612E+16"]
)
def test_ids_that_lost_digits_are_told_apart(cell):
    def table(*ids: str) -> Table:
        return Table("n.csv", pd.DataFrame({"id": ids}, index=[2, 3], dtype="str"))

    with pytest.raises(
        GraphError, match=rf"n.csv: 1 id of column 'id' has lost digits, first: line 3 \('{re.escape(cell)}'\)"
    ):
        refuse_lost_digits(table("7", cell), "id")
    refuse_lost_digits(table("1e3", "1152921504606846976"), "id")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"<!DOCTYPE html><html><body>404, not found</body></html>\n", "is a web page"),
        (b"\xef\xbb\xbf  <html>\n", "is a web page"),
        (b'<?xml version="1.0"?>\n<graphml/>', "is XML"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n", "git lfs pull"),
        (b"-- a dump\nSET x;\n\nINSERT INTO edges VALUES (1,2);\n", "is a dump of a database"),
        (b'{"nodes": [1, 2]}\n', "is JSON"),
        (b'[{"id": 1}, {"id": 2}]\n', "is JSON"),
        (b"PAR1\0\0", "is Parquet; rename it"),
        (b"PK\x03\x04\0\0", "rename it so that it ends in .xlsx"),
        (b"<stata_dta><header>", "export delimited"),
        (b"$FL2@(#)", "is a file of SPSS"),
        (b"RDX3\nX\n", "row.names=FALSE"),
    ],
)
@pytest.mark.parametrize("name", ["edges.csv", "edges.csv.gz"])
def test_files_that_are_no_table_are_named(write, text, words, name):
    folder = write({"nodes.csv": NODES})
    (folder / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(GraphError, match=f"{name}: .*{words}"):
        load(folder)


def test_lines_end_where_files_say(write):
    assert read_lines(write({"l.txt": "a\u2028b\x0c\r\nc\n"}) / "l.txt", "utf-8-sig") == ["a\u2028b\x0c", "c"]


def test_an_ending_in_capitals_is_one(write):
    folder = write({"nodes.csv": NODES})
    (folder / "E.CSV.GZ").write_bytes(gzip.compress(EDGES.encode()))
    assert len(read_table(folder / "E.CSV.GZ")) == N
    (folder / "E.CSV.GZ").write_text(EDGES)
    with pytest.raises(GraphError, match=r"E.CSV.GZ: is not gzip data although its name ends in .gz"):
        read_table(folder / "E.CSV.GZ")


# A header with a mark in front.


@pytest.mark.parametrize(
    ("head", "names"),
    [
        ("#,id,age", ["#", "id", "age"]),
        ("#,person,age", ["#", "person", "age"]),
        ("#tag,likes,age", ["tag", "likes", "age"]),
        ("# a note\n#tag,likes,age", ["tag", "likes", "age"]),
        ("# made by hand, in June, by Ann\nnr,id,age", ["nr", "id", "age"]),
        ("#made by hand, in June\nnr,id,age", ["nr", "id", "age"]),
    ],
)
@pytest.mark.parametrize("first", ["{}", "p{}"])
def test_a_header_with_a_mark_names_the_columns(write, head, names, first):
    rows = "".join(f"{first.format(i)},{i + 5},{20 + i % 7}\n" for i in range(N))
    table = read_table(write({"n.csv": f"{head}\n{rows}"}) / "n.csv", header=None)
    assert list(table.names) == names and len(table) == N


def test_a_mark_before_words_is_asked_for(write):
    path = write({"n.csv": "#tag,kind\n" + "".join(f"t{c},k{c}\n" for c in "abcdefg")}) / "n.csv"
    with pytest.raises(
        GraphError, match=r"n.csv: line 1 \('#tag,kind'\) begins like a comment, but may name the columns"
    ):
        read_table(path, header=None)


def test_many_empty_lines_take_no_time(write):
    path = write({"e.csv": "# a list\n" + "\n" * 400_000 + EDGES}) / "e.csv"
    start = time.process_time()
    assert len(read_table(path)) == N and time.process_time() - start < 4


# Files without a header.


@pytest.mark.parametrize("sep", [" ", "\t", ",", ";", "   "])
@pytest.mark.parametrize("described", [False, True])
def test_files_of_ids_without_a_header(write, sep, described):
    shift = 100  # the ids begin elsewhere than with 0 and 1
    edges = "".join(f"{a + shift}{sep}{b + shift}\n" for a, b in PAIRS)
    nodes = "".join(f"{i + shift}{sep}{'NS'[i // 2 % 2]}\n" for i in range(N))
    card = {"dataset.yaml": "edges: edges.csv\nnodes: nodes.csv\n"} if described else {}
    graph = load(write({"edges.csv": edges, "nodes.csv": nodes} | card))
    assert right(graph, shift)
    assert graph.attribute("2").labels == ("N", "S")
    notes = [m for m in graph.messages if m.code == "no-header"]
    assert [m.text.split(":")[0] for m in notes] == ["nodes.csv", "edges.csv"]
    assert "columns are called 1, 2" in notes[0].text


def test_ids_of_text_without_a_header(write):
    edges = "ana,bob\nbob,carl\nana,carl\n"
    graph = load(write({"edges.csv": edges, "nodes.csv": "ana,N\nbob,S\ncarl,N\n"}))
    assert graph.ids(slice(None)) == ["ana", "bob", "carl"] and graph.edges.tolist() == [[0, 0, 1], [1, 2, 2]]


def test_edges_with_weights_and_times_without_a_header(write):
    edges = "".join(f"{a + 5} {b + 5} 1 {1082040961 + i}\n" for i, (a, b) in enumerate(PAIRS))
    nodes = "id,region\n" + "".join(f"{i + 5},{'NS'[i // 2 % 2]}\n" for i in range(N))
    graph = load(write({"edges.csv": edges, "nodes.csv": nodes}))
    assert right(graph, 5) and not graph.weighted


@pytest.mark.parametrize("header", ["source,target", "2001,name", ",0", "a,b"])
def test_headers_that_are_none_of_the_rows(tmp_path, header):
    path = tmp_path / "x.csv"
    rows = {"2001,name": "5,7", ",0": "0,5\n1,7", "a,b": "5,6\n7,8"}.get(header, "5,6\n6,7")
    path.write_text(f"{header}\n{rows}\n")
    assert list(read_table(path, header=None).names) == header.split(",")


def test_column_numbers_as_a_header_are_asked_for(write):
    files = {"nodes.csv": NODES, "edges.csv": "0,1\n1,2\n2,3\n"}
    with pytest.raises(GraphError, match=r"edges.csv: line 1 \('0', '1'\) may be the first row, or column numbers"):
        load(write(files))
    for header, edges in (("false", 3), ("true", 2)):
        card = f"edges: {{file: edges.csv, header: {header}}}\nnodes: nodes.csv\n"
        assert load(write(files | {"dataset.yaml": card})).num_edges == edges


@pytest.mark.parametrize("ends", ["a,b", "x,y", "u,v"])
def test_letters_that_may_be_ids_or_names_are_asked_for(write, ends):
    nodes = "id,g\n" + "".join(f"{c},{i % 2}\n" for i, c in enumerate("abcuvwxyz"))
    rows = "".join(f"{ends[2]},{c}\n{c},{ends[0]}\n" for c in "cwz")
    files = {"nodes.csv": nodes, "edges.csv": f"{ends}\n{rows}"}
    with pytest.raises(GraphError, match=r"may be the first row, or a header; say which in dataset.yaml"):
        load(write(files))
    for header, count in (("false", 7), ("true", 6)):
        card = f"edges: {{file: edges.csv, header: {header}}}\nnodes: nodes.csv\n"
        assert load(write(files | {"dataset.yaml": card})).num_edges == count


def test_words_in_a_column_of_rows_in_order_are_not_split(write):
    path = write({"n.csv": "home town\nNew York\nLos Angeles\n"}) / "n.csv"
    assert read_table(path, sep=None, in_place=True).names == ("home town",)


def test_a_list_of_edges_that_begins_with_0_and_1(write):
    graph = load(write({"nodes.csv": NODES, "edges.csv": "0 1\n0 2\n1 3\n"}))
    assert graph.edges.tolist() == [[0, 0, 1], [1, 2, 3]]


@pytest.mark.parametrize("side", ["nodes", "users"])
def test_header_and_columns_in_the_card(write, side):
    files = {"e.csv": "7,a,1\n8,b,2\n9,a,1\n", "n.csv": "7,N\n8,S\n9,N\n", "i.csv": "a,x\nb,y\n"}
    if side == "nodes":
        files["e.csv"] = "7,8,1\n8,9,2\n"
    card = f"""
edges: {{file: e.csv, header: false, columns: [from, to, strength], source: from, target: to, weight: strength}}
{side}: {{file: n.csv, columns: [person, region], id: person}}
attributes: [region]
"""
    card += "items: {file: i.csv, header: false, columns: [title, kind], id: title}\n" * (side == "users")
    graph = load(write(files | {"dataset.yaml": card}))
    assert graph.ids([0, 1, 2]) == ["7", "8", "9"] and graph.weighted
    assert graph.attribute("region").labels == ("N", "S")


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (
            "columns: [a]",
            "edges.csv: columns: in dataset.yaml has 1 of the 2 names that line 1 ('source', 'target') needs",
        ),
        ("columns: [from, to]", "edges.csv: columns are named in dataset.yaml, and line 1"),
        ("header: 1", "dataset.yaml: edges.header: found 1; allowed: true or false"),
        ("columns: a", "dataset.yaml: edges.columns: found 'a'; allowed: list of names"),
    ],
)
def test_header_and_columns_that_do_not_fit(write, part, text):
    card = f"edges: {{file: edges.csv, {part}}}\nnodes: nodes.csv\n"
    with pytest.raises(GraphError) as error:
        load(write({"edges.csv": EDGES, "nodes.csv": NODES, "dataset.yaml": card}))
    assert str(error.value).startswith(text)


def test_columns_rename_a_header(write):
    card = "edges: {file: edges.csv, header: true, columns: [to, from]}\nnodes: nodes.csv\n"
    graph = load(write({"edges.csv": EDGES, "nodes.csv": NODES, "dataset.yaml": card}))
    assert [(c.name, c.role) for c in graph.columns if c.file == "edges.csv"] == [("to", "target"), ("from", "source")]


def test_a_described_first_row_never_becomes_names(write):
    card = "edges: edges.csv\nnodes: nodes.csv\n"
    files = {"edges.csv": "x,y\nz,z\n", "nodes.csv": "id,g\nx,1\ny,2\nz,1\n", "dataset.yaml": card}
    with pytest.raises(GraphError, match=r"edges.csv: seems to have no header line: line 1 holds 'x', 'y'"):
        load(write(files))
    for said in ("header: false", "columns: [a, b]"):
        graph = load(write(files | {"dataset.yaml": f"edges: {{file: edges.csv, {said}}}\nnodes: nodes.csv\n"}))
        assert graph.ids(graph.edges[:, 0]) == ["x", "y"]


@pytest.mark.parametrize("seed", range(25))
def test_a_graph_is_read_the_same_with_and_without_header(write, seed):
    rng = random.Random(seed)
    kind = rng.choice(["number", "text", "wide", "zeros"])
    ids = rng.sample(range(1000), 30)
    named = [
        {"number": "{}", "text": "p{}", "wide": "9007199254{:06d}", "zeros": "{:05d}"}[kind].format(i) for i in ids
    ]
    pairs = sorted({tuple(sorted(rng.sample(range(30), 2))) for _ in range(80)})
    rng.shuffle(pairs)
    sep = rng.choice([",", ";", "\t", " "])
    wanted = {frozenset((named[a], named[b])) for a, b in pairs}
    for edge_head, node_head in itertools.product([f"source{sep}target\n", ""], [f"id{sep}g\n", ""]):
        edges = edge_head + "".join(f"{named[a]}{sep}{named[b]}\n" for a, b in pairs)
        nodes = node_head + "".join(f"{v}{sep}{'xyz'[i % 3]}\n" for i, v in enumerate(named))
        graph = load(write({"edges.csv": edges, "nodes.csv": nodes}))
        got = {frozenset(graph.ids(list(e))) for e in graph.edges.T}
        assert got == wanted and graph.num_nodes == 30


# Rows that surveys write under the header.

TEXTS = "ResponseId,Q1,Q2\nResponse ID,What is your gender?,Where do you live?\n"
IDS = '"{""ImportId"":""_recordId""}","{""ImportId"":""QID1""}","{""ImportId"":""QID2"",""timeZone"":""UTC""}"\n'
ANSWERS = "".join(f"R_{i},{['Woman', 'Man'][i % 2]},{'NS'[i // 2 % 2]}\n" for i in range(N))
ANSWERED = "source,target\n" + "".join(f"R_{a},R_{b}\n" for a, b in PAIRS)


@pytest.mark.parametrize(
    ("head", "rows"),
    [
        (TEXTS + IDS, 2),
        (TEXTS.replace("Where do you live?", '"Where\ndo, you, live?"') + IDS, 2),
        (TEXTS, 1),
        (TEXTS.splitlines()[0] + "\n" + IDS, 1),
        (TEXTS.replace("ResponseId,Q1", "person,Q1") + IDS, 2),
    ],
)
def test_rows_of_question_texts_are_no_people(write, head, rows):
    graph = load(write({"nodes.csv": head + ANSWERS, "edges.csv": ANSWERED}))
    assert graph.num_nodes == N and graph.attribute("Q1").labels == ("Man", "Woman")
    found = message(graph, "survey-rows")
    assert (found.level, found.count) == ("warning", rows) and "Qualtrics" in found.text
