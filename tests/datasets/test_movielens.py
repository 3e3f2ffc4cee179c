"""MovieLens-1M and -100K, from made files in GroupLens' formats."""

import pytest

from uge_core.datasets import load
from uge_core.errors import GraphError
from uge_core.graph.graph import NOT_APPLICABLE, UNKNOWN

USERS = "1::F::1::10::48067\n2::M::56::16::70072-11\n3::M::25::2::55117\n"
MOVIES = (
    "1::Story, A: B (1995)::Animation|Comedy\n2::Unrated (1996)::Drama\n7::Fran\u00e7ois::x (1999)::Comedy\n".encode(
        "latin-1"
    )
)
RATINGS = "1::7::5::978300760\n2::7::1::978302109\n2::1::3::978301968\n"
PAIRS = "user_id,movie_id\n1,7\n2,1\n2,7\n"


def test_1m_from_ratings(write):
    graph = load(write({"users.dat": USERS, "movies.dat": MOVIES, "ratings.dat.gz": RATINGS}))
    assert (graph.layout, graph.num_nodes, graph.num_users, graph.num_items) == ("movielens-1m", 5, 3, 2)
    assert graph.edges.tolist() == [[0, 1, 1], [4, 3, 4]]
    assert graph.ids(slice(None)) == ["user:1", "user:2", "user:3", "movie:1", "movie:7"]
    assert [(a.name, a.side) for a in graph.attributes] == [
        ("gender", "users"),
        ("age", "users"),
        ("occupation", "users"),
        ("genre", "items"),
    ]
    assert graph.attribute("age").labels == ("1", "25", "56")
    assert graph.attribute("age").ordered
    assert graph.attribute("gender").codes.tolist() == [0, 1, 1, NOT_APPLICABLE, NOT_APPLICABLE]
    assert graph.attribute("genre").codes.tolist() == [NOT_APPLICABLE] * 3 + [0, 1]
    assert graph.attribute("genre").labels == ("Animation", "Comedy")
    assert (graph.defaults.unknown, graph.defaults.test_share) == ("exclude", 0.2)
    roles = {c.name: c.role for c in graph.columns}
    assert (roles["rating"], roles["zip"], roles["title"]) == ("ignored", "ignored", "ignored")
    counts = {m.code: m.count for m in graph.messages}
    assert counts["items-without-edges"] == 1
    assert counts["nodes-without-edges"] == 1
    cells = next(m for m in graph.messages if m.code == "no-item-cells")
    assert "UGE-W is one constant per user group" in cells.text
    assert "popularity deciles or genre" in cells.text


def test_1m_from_pairs_is_the_same_graph(write):
    rated = load(write({"users.dat": USERS, "movies.dat": MOVIES, "ratings.dat": RATINGS}))
    folder = write({"user_movie_pairs.csv.gz": PAIRS})
    (folder / "ratings.dat").unlink()
    assert load(folder).fingerprint == rated.fingerprint


def test_1m_without_movies_has_no_genres(write):
    graph = load(write({"users.dat": USERS, "user_movie_pairs.csv": "user_id,movie_id\n1,10\n2,9\n"}))
    assert graph.ids([3, 4]) == ["movie:9", "movie:10"]
    assert [a.name for a in graph.attributes] == ["gender", "age", "occupation"]
    assert "popularity deciles)" in next(m.text for m in graph.messages if m.code == "no-item-cells")


HUNDRED = {
    "u.user": "1|7|M|student|85711\n2|17|F|other|94043\n3|18|F|other|T8H1N\n4|49|M|none|1\n5|56|M|none|1\n",
    "u.data.gz": "1\t1\t3\t881250949\n2\t1\t3\t891717742\n3\t2\t1\t878887116\n4\t3\t1\t1\n5\t3\t1\t1\n",
    "u.item": (
        '1|Toy "T" (1995)|01-Jan-1995||http://x|0|0|0|1|1|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n'
        "2|Caf\u00e9|01-Jan-1995||http://x|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n"
        "3|No flag||||0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n"
    ).encode("latin-1"),
}


def test_100k(write):
    graph = load(write(HUNDRED))
    assert (graph.layout, graph.num_users, graph.num_items, graph.num_edges) == ("movielens-100k", 5, 3, 5)
    age = graph.attribute("age")
    assert age.labels == ("under 18", "18-24", "45-49", "56+")
    assert age.codes[:5].tolist() == [0, 0, 1, 2, 3]
    assert age.ordered
    genre = graph.attribute("genre")
    assert genre.labels == ("Action", "Animation")
    assert genre.codes[5:].tolist() == [1, 0, UNKNOWN]
    assert "in bands: under 18" in next(c.detail for c in graph.columns if c.name == "age")


ONE_M = {"users.dat": USERS, "movies.dat": MOVIES, "ratings.dat": RATINGS}


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (
            {**ONE_M, "ratings.dat": RATINGS + "9::7::1::1\n"},
            "ratings.dat: 1 edge names a node that does not exist, first: line 4 ('9', '7'); allowed: the 3 users "
            "of users.dat and the 3 movies of movies.dat",
        ),
        (
            {**ONE_M, "ratings.dat": "1,7,5,1\n"},
            "ratings.dat: line 1 has 1 fields separated by '::', expected 4: user_id, movie_id, rating, timestamp",
        ),
        (
            {**ONE_M, "users.dat": USERS + "1::F::1::1::1\n"},
            "users.dat: 1 row repeats an id of column 'user_id', first: line 4 ('1')",
        ),
        (
            {**ONE_M, "movies.dat": "1::A\n"},
            "movies.dat: line 1 has fewer than the three fields MovieID::Title::Genres",
        ),
        (
            {"users.dat": USERS, "user_movie_pairs.csv": "user,item\n1,7\n"},
            "user_movie_pairs.csv: column 'user_id' is missing from the header; found: user, item",
        ),
        (
            {**HUNDRED, "u.user": HUNDRED["u.user"].replace("|7|", "|old|")},
            "u.user: column 'age' must hold numbers, found: line 1 ('old')",
        ),
    ],
)
def test_blocking_problems(write, files, text):
    with pytest.raises(GraphError) as error:
        load(write(files))
    assert text in str(error.value)


@pytest.mark.parametrize(("asked", "role"), [("timestamp", "ignored"), ("user_id", "id")])
def test_only_columns_of_nodes_can_be_attributes(write, asked, role):
    with pytest.raises(GraphError, match=f"column '{asked}' of .* has the role {role} and cannot be an attribute"):
        load(write(ONE_M), attributes=[asked])


def test_a_zip_code_can_be_asked_for(write):
    assert load(write(ONE_M), attributes=["ZIP"]).attribute("zip").side == "users"


@pytest.mark.parametrize(
    ("asked", "names"), [("gender", ["gender", "genre"]), ("genre", ["genre"]), ("zip,genre", ["zip", "genre"])]
)
def test_the_attributes_of_items_stay(write, asked, names):
    graph = load(write(ONE_M), attributes=asked)
    assert [a.name for a in graph.attributes] == names
    assert graph.attribute("genre").side == "items"
    assert {c.name: c.detail for c in graph.columns}["age"] == "not named by --attributes"
