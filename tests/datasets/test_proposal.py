"""What ``uge data describe`` proposes: the lines with their evidence, doubts, and readings that fit alike."""

import itertools
from pathlib import Path

import pytest
import yaml

from uge_core.cli.main import run
from uge_core.datasets import load
from uge_core.datasets.card import read_card
from uge_core.datasets.mapping import card_text, guess_mapping, read_pair
from uge_core.datasets.proposal import propose
from uge_core.errors import DatasetMissing, GraphError, NotRecognised

PEOPLE = "row;gender;years;age;handle;city\n" + "".join(
    f"{i};{['f', 'm', 'unknown'][i % 3]};{i % 7};{[0, *range(18, 70)][i % 53]};u{i:03};{'NSWE'[i % 4]}\n"
    for i in range(120)
)
FRIENDS = "# wave 2\nwhen;strength;a;b\n" + "".join(
    f"{i % 9};{1 + i % 3};u{i:03};u{(i + 5) % 120:03}\n" for i in range(120)
)


def lines_above(text: str, line: str) -> str:
    """The comment before a line, in one."""
    lines = text.splitlines()
    at = lines.index(line)
    found = []
    while lines[at - 1].lstrip().startswith("#"):
        at -= 1
        found.insert(0, lines[at].lstrip(" #"))
    return " ".join(found)


def test_every_line_has_its_evidence(write):
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS})
    proposal = propose(folder)
    text = proposal.text
    assert yaml.safe_load(text) == yaml.safe_load(card_text(proposal.made))
    assert proposal.made == guess_mapping(read_pair(folder, "friends.csv", "people.csv"))
    assert lines_above(text, "  file: friends.csv") == (
        "120 rows; semicolons separate (by its first lines); line 2 names the columns: when, strength, a, b; 1 line at "
        "the start begins with # and was skipped as a comment"
    )
    assert lines_above(text, "  source: a") == "120 of 120 different values (100.0%) are ids in handle of people.csv"
    assert lines_above(text, "  target: b") == "120 of 120 different values (100.0%) are ids in handle of people.csv"
    assert lines_above(text, "  weight: strength") == "called like a weight; numbers from 1 to 3"
    assert lines_above(text, "  id: handle") == "120 different values in 120 rows; edges name 120 of them"
    assert lines_above(text, "  city: {}") == "4 different values in 120 rows, commonest: N, S, W, E"
    assert lines_above(text, "- gender") == "by its name"
    doubts = " ".join(line.lstrip("# ") for line in text.split("# Doubts\n")[1].splitlines())
    assert "gender: unknown probably means that nothing was given (40 cells)" in doubts
    assert "age: 0 probably means that nothing was given (3 cells)" in doubts


def test_what_is_written_is_what_was_printed_and_loads(write, capsys):
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS})
    assert run(["data", "describe", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert err == "" and not (folder / "dataset.yaml").exists()
    assert run(["data", "describe", str(folder), "--write"]) == 0
    again, err = capsys.readouterr()
    assert again == out and f"wrote {folder / 'dataset.yaml'}" in err
    assert yaml.safe_load((folder / "dataset.yaml").read_text()) == yaml.safe_load(out)
    graph = load(folder)
    assert (graph.num_nodes, graph.num_edges) == (120, 120)
    assert graph.ids([0]) == ["u000"] and graph.attribute("gender").unknown.sum() == 40
    assert run(["data", "describe", str(folder), "--write"]) == 2
    out, err = capsys.readouterr()
    assert "is there already and stays as it is" in err and "proposed by the tables alone" in " ".join(
        out.split("\n# ")
    )


def test_nodes_without_a_row_are_a_doubt_that_names_the_key(write):
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS + "1;1;u000;zoe\n1;1;yan;u000\n"})
    proposal = propose(folder)
    assert lines_above(proposal.text, "  source: a").startswith("120 of 121 different values (99.2%)")
    (doubt,) = (d for d in proposal.doubts if "unknown_nodes" in d)
    assert doubt.startswith("2 of 122 ids in the edges have no row in people.csv, first: yan, zoe.")
    proposal.write()
    with pytest.raises(GraphError, match="unknown_nodes: drop"):
        load(folder)
    card = folder / "dataset.yaml"
    card.write_text(card.read_text() + "unknown_nodes: drop\n")
    assert load(folder).num_edges == 120


def test_two_pairs_of_ends_are_named_with_their_joins_and_the_key(write):
    rows = "from,to,giver,taker\n" + "".join(
        f"p{i},p{(i + 1) % 40},p{(i + 1) % 40},p{(i + 3) % 40}\n" for i in range(40)
    )
    nodes = "id,g\n" + "".join(f"p{i},{'ab'[i // 3 % 2]}\n" for i in range(40))
    folder = write({"links.csv": rows, "people.csv": nodes})
    for more in ("", "ghost,p1,p2,p3\n"):  # about as well, not only entirely
        (folder / "links.csv").write_text(rows + more)
        with pytest.raises(GraphError) as error:
            propose(folder)
        said = str(error.value)
        assert "'from' and 'to', or 'giver' and 'taker' could be the ends" in said
        assert f"from 40 of {41 if more else 40}" in said and "taker 40 of 40" in said
        assert "name the two in dataset.yaml (edges: source and target)" in said
    (folder / "dataset.yaml").write_text("edges: {file: links.csv, source: giver, target: taker}\nnodes: people.csv\n")
    (folder / "links.csv").write_text(rows)
    assert load(folder).num_edges == 40


@pytest.mark.parametrize("bipartite", [False, True])
def test_two_ids_that_fit_are_named_with_their_joins_and_the_key(write, bipartite, capsys):
    nodes = "person,row,g\n" + "".join(f"{(i * 7) % 40},{i},{'ab'[i // 3 % 2]}\n" for i in range(40))
    edges = "a,b\n" + "".join(f"{i},{f't{i % 5}' if bipartite else (i + 1) % 40}\n" for i in range(40))
    folder = write({"links.csv": edges, "people.csv": nodes})
    assert run(["data", "describe", str(folder), "--write"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and not (folder / "dataset.yaml").exists()
    assert "person: a 40 of 40" in err and "row: a 40 of 40" in err and "(nodes: id)" in err


def test_numbers_of_others_that_happen_to_be_ids_are_asked_for(write):
    ratings = "userId,movieId,rating\n" + "".join(f"{i % 9 + 1},{i % 31 + 1},4.0\n" for i in range(90))
    movies = "movieId,title,genre\n" + "".join(f"{i + 1},Film {i},{'ab'[i % 3 == 0]}\n" for i in range(40))
    folder = write({"ratings.csv": ratings, "movies.csv": movies})
    with pytest.raises(
        GraphError, match=r"100\.0% of movieId and 100\.0% of userId are ids in movieId.*users \(file, id\)"
    ):
        propose(folder)
    (folder / "dataset.yaml").write_text(
        "edges: {file: ratings.csv, source: movieId, target: userId}\nusers: {file: movies.csv, id: movieId}\n"
    )
    assert (load(folder).num_users, load(folder).num_items) == (40, 9)


def test_text_ids_of_both_ends_are_one_kind_whatever_they_are_called(write):
    people = "person,g\n" + "".join(f"p{i},{'ab'[i // 3 % 2]}\n" for i in range(40))
    links = "person,friend\n" + "".join(f"p{i},p{(i + 1) % 40}\n" for i in range(40))
    made = propose(write({"links.csv": links, "people.csv": people})).made
    assert (made.source, made.target, made.id, made.sides) == ("person", "friend", "person", "one")


def test_years_called_like_ends_are_not_proposed(write):
    edges = "person,colleague,from,to\n" + "".join(f"{i},{(i * 3) % 2500},{1990 + i % 20},2010\n" for i in range(2500))
    nodes = "id,g\n" + "".join(f"{i},{'ab'[i // 3 % 2]}\n" for i in range(2500))
    made = propose(write({"edges.csv": edges, "nodes.csv": nodes})).made
    assert (made.source, made.target, made.id) == ("person", "colleague", "id")


def test_files_without_a_header_and_without_names_that_tell(write):
    people = "".join(f"p{i}\t{'NS'[i // 3 % 2]}\n" for i in range(30))
    links = "".join(f"p{i}\tp{(i + 1) % 30}\n" for i in range(30))
    folder = write({"a.txt": people, "b.txt": links})
    proposal = propose(folder)
    assert (proposal.made.edges, proposal.made.nodes) == ("b.txt", "a.txt")
    assert "tabs separate" in lines_above(proposal.text, "  file: b.txt")
    assert "has no header line" in lines_above(proposal.text, "  file: b.txt")
    proposal.write()
    assert load(folder).num_edges == 30 and load(folder).attribute("2").labels == ("N", "S")


def test_tables_that_join_alike_are_named_by_the_user(write):
    ring = "a;b\n" + "".join(f"u{i:03};u{(i + 1) % 120:03}\n" for i in range(120))
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS, "links.csv": ring})
    with pytest.raises(
        GraphError, match=r"friends\.csv with people\.csv or links\.csv with people\.csv; name the two with"
    ):
        propose(folder)
    assert propose(folder, "links.csv", "people.csv").made.edges == "links.csv"
    assert propose(folder, "links.csv").made.nodes == "people.csv"
    with pytest.raises(DatasetMissing, match=r"gone.csv: no such file"):
        propose(folder, "gone.csv", "people.csv")


def test_names_of_columns_cannot_write_lines(write):
    odd = "it: is #1\u2028x" + "y" * 150
    nodes = f'id,"{odd}",yes\n' + "".join(f"{i},{'ab'[i // 3 % 2]},{'cd'[i % 3 == 0]}\n" for i in range(30))
    edges = "source,target\n" + "".join(f"{i},{(i + 1) % 30}\n" for i in range(30))
    folder = write({"links.csv": edges, "people.csv": nodes})
    proposal = propose(folder)
    assert yaml.safe_load(proposal.text) == yaml.safe_load(card_text(proposal.made))
    assert "\u2028" not in "".join(line for line in proposal.text.split("\n") if line.lstrip().startswith("#"))
    assert set(read_card(proposal.write()).attributes) == {odd, "yes"}


def test_layouts_that_need_no_card_say_so(write, capsys):
    folder = write({"g.gml": 'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ] edge [ source 0 target 1 ] ]'})
    assert run(["data", "describe", str(folder)]) == 0
    out, _ = capsys.readouterr()
    text = " ".join(line.lstrip("# ") for line in out.splitlines())
    assert "is read without a dataset.yaml, by the layout graph-file" in text and yaml.safe_load(out) is None
    assert run(["data", "describe", str(folder), "--write"]) == 2
    assert "so that none was written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "0 tables found, two are needed.*no files; write the graph as edges.csv"),
        ({"a.csv": "x,y\n1,2\n"}, "1 table found, two are needed"),
        ({"g.zip": b"PK"}, "g.zip is an archive, which is not opened.*write the graph as edges.csv"),
        (
            {"links.csv": "a,b\nx,y\ny,z\n", "people.csv": "id,g\n1,a\n2,b\n"},
            r"no column of the first holds ids of the second.*--edges and --nodes",
        ),
    ],
)
def test_what_cannot_be_described(write, files, said):
    with pytest.raises(GraphError, match=said):
        propose(write(files))


def test_a_folder_that_is_not_there():
    with pytest.raises(DatasetMissing, match="no such folder"):
        propose("/nowhere/at all")


def test_an_unrecognised_folder_leads_to_a_command_that_works(write, capsys):
    folder = write({"people.csv": PEOPLE, "friends.csv": FRIENDS})
    with pytest.raises(NotRecognised):
        load(folder)
    assert run(["data", "inspect", str(folder)]) == 2
    out, err = capsys.readouterr()
    found, command = err.splitlines()
    assert out == "" and found == f"uge: {folder}: no recognised layout. Found: friends.csv, people.csv"
    arguments = command.split("says: uge ")[1].split()
    assert arguments == ["data", "describe", str(folder)]
    assert run([*arguments, "--write"]) == 0 and run(["data", "inspect", str(folder)]) == 0
    assert Path(folder / "dataset.yaml").exists()


IDS = [str(i) for i in range(1, 41)]
RING = [(i, str(int(i) % 40 + 1)) for i in IDS]
WHO = "id,g\n" + "".join(f"{i},{'ab'[int(i) // 3 % 2]}\n" for i in IDS)


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ("source,target\n" + "".join(f"{a} ,{b}\n" for a, b in RING), "without the blanks around"),
        ("id,friends\n" + "".join(f"{a},{b};{a}\n" for a, b in RING), "lists of ids of people.csv in single cells"),
        ("id,sex\n" + "".join(f"{a},{'fm'[int(a) % 2]}\n" for a, _ in RING), "no second column holds ids"),
        ("u,v,value\n" + "".join(f"{a},{b},{int(a) % 2}\n" for a, b in RING), "with '0' in column 'value'"),
    ],
)
def test_what_would_be_read_wrong_is_not_proposed(write, edges, said):
    with pytest.raises(GraphError, match=said):
        propose(write({"links.csv": edges, "people.csv": WHO}))


def test_a_first_pair_is_no_header(write):
    names = [f"ann{i}" for i in range(20)]
    edges = "bo,cy\n" + "".join(f"{a},{b}\n" for a, b in itertools.pairwise(names))
    people = "id,g\nbo,x\ncy,y\n" + "".join(f"{n},{'xy'[k % 2]}\n" for k, n in enumerate(names))
    with pytest.raises(GraphError, match="header"):
        propose(write({"links.csv": edges, "people.csv": people}))


def test_what_is_called_edges_and_nodes_comes_first(write):
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in RING)
    folder = write({"edges.csv": edges, "nodes.csv": WHO, "nodes (1).csv": WHO, "attributes.csv": WHO})
    proposal = propose(folder)
    assert (proposal.made.edges, proposal.made.nodes) == ("edges.csv", "nodes.csv")
    assert "other tables here: attributes.csv, nodes (1).csv" in proposal.doubts[0]


def test_a_proposal_that_is_refused_says_so(write):
    people = WHO.replace("id,g", "id,gender").replace(",a", ",x").replace(",b", ",x")
    edges = "source,target\n" + "".join(f"{a},{b}\n" for a, b in RING)
    assert any("nothing can be audited" in d for d in propose(write({"links.csv": edges, "people.csv": people})).doubts)
