"""Files as programs and collections write them, made anew and small, and what happens to each.

Each is the same graph of 12 people, ids in no order, where the form allows it. `test_real_layouts` reads them all, and the
table of docs/data.md is written from this list.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

IDS = (17, 4, 23, 8, 42, 15, 16, 99, 5, 31, 12, 77)
CITIES = "NSNNSNSSNSNS"
AGES = (20, 35, 41, 28, 63, 55, 37, 44, 29, 51, 33, 46)
PAIRS = tuple(sorted({tuple(sorted((i, (i + step) % 12))) for i in range(12) for step in (1, 5)}))
NAMED = tuple((IDS[a], IDS[b]) for a, b in PAIRS)

Files = Mapping[str, str | bytes]


@dataclass(frozen=True)
class Real:
    """Files of a kind.

    Attributes:
        source: the program or collection.
        form: what it writes.
        files: makes them.
        happens: read, described (by dataset.yaml, which `uge data describe` writes), or refused.
        words: what is said: of a message's code when it is read, of the error when it is refused.
        nodes: whom ids call when it is read: "ids", "positions", or "" where the form is another graph.
    """

    source: str
    form: str
    files: Callable[[], Files]
    happens: str = "read"
    words: str = ""
    nodes: str = "ids"


def rows(lines: Sequence[Sequence[Any]], sep: str = ",", end: str = "\n") -> str:
    return "".join(sep.join(map(str, line)) + end for line in lines)


def edges(sep: str = ",", header: str = "source,target") -> str:
    return (rows([header.split(",")], sep) if header else "") + rows(NAMED, sep)


def nodes(sep: str = ",", header: str = "id,city,age") -> str:
    people = list(zip(IDS, CITIES, AGES, strict=True))
    return (rows([header.split(",")], sep) if header else "") + rows(people, sep)


def frames() -> tuple[Any, Any]:
    import pandas as pd

    return (
        pd.DataFrame(NAMED, columns=["source", "target"]),
        pd.DataFrame({"id": IDS, "city": list(CITIES), "age": AGES}),
    )


def pandas_csv(**options: Any) -> Files:
    links, people = frames()
    return {"edges.csv": links.to_csv(**options), "nodes.csv": people.to_csv(**options)}


def pandas_parquet() -> Files:
    out = {}
    for name, frame in zip(("edges", "nodes"), frames(), strict=True):
        buffer = io.BytesIO()
        frame.to_parquet(buffer)
        out[f"{name}.parquet"] = buffer.getvalue()
    return out


def workbook(**sheets: Sequence[Sequence[Any]]) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, lines in sheets.items():
        sheet = book.create_sheet(name)
        for line in lines:
            sheet.append(list(line))
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


LINES_OF_EDGES = [("source", "target"), *NAMED]
LINES_OF_NODES = [("id", "city", "age"), *zip(IDS, CITIES, AGES, strict=True)]


def networkx_graph() -> Any:
    import networkx as nx

    graph = nx.Graph()
    for i, city, age in zip(IDS, CITIES, AGES, strict=True):
        graph.add_node(i, city=city, age=age)
    graph.add_edges_from(NAMED)
    return graph


def networkx_file(ending: str) -> Files:
    import networkx as nx

    buffer, graph = io.BytesIO(), networkx_graph()
    if ending == "gml":
        nx.write_gml(graph, buffer, stringizer=str)
    elif ending == "net":
        for _, data in graph.nodes(data=True):
            data["age"] = str(data["age"])
        nx.write_pajek(graph, buffer)
    else:
        {"graphml": nx.write_graphml, "gexf": nx.write_gexf}[ending](graph, buffer)
    return {f"club.{ending}": buffer.getvalue()}


def networkx_list(kind: str) -> Files:
    import networkx as nx

    buffer, graph = io.BytesIO(), networkx_graph()
    {"edgelist": nx.write_edgelist, "adjlist": nx.write_adjlist}[kind](graph, buffer)
    return {"edges.csv": buffer.getvalue(), "nodes.csv": nodes()}


def networkx_json(kind: str) -> Files:
    import networkx as nx

    graph = networkx_graph()
    data = {
        "links": lambda g: nx.node_link_data(g, edges="links"),
        "edges": lambda g: nx.node_link_data(g, edges="edges"),
    }
    data |= {"adjacency": nx.adjacency_data, "cytoscape": nx.cytoscape_data}
    return {"club.json": json.dumps(data[kind](graph))}


def gephi_gexf() -> str:
    people = "".join(
        f'<node id="{i}" label="{i}"><attvalues><attvalue for="0" value="{c}"/><attvalue for="1" value="{a}"/></attvalues>'
        '<viz:size value="10.0"/><viz:position x="1.5" y="-2.25" z="0.0"/><viz:color r="192" g="192" b="192"/></node>'
        for i, c, a in zip(IDS, CITIES, AGES, strict=True)
    )
    links = "".join(f'<edge id="{n}" source="{a}" target="{b}"/>' for n, (a, b) in enumerate(NAMED))
    return (
        '<?xml version="1.0" encoding="UTF-8"?><gexf xmlns="http://www.gexf.net/1.3" version="1.3" '
        'xmlns:viz="http://www.gexf.net/1.3/viz"><meta lastmodifieddate="2024-01-01"><creator>Gephi 0.10</creator></meta>'
        '<graph defaultedgetype="undirected" mode="static"><attributes class="node" mode="static">'
        '<attribute id="0" title="city" type="string"/><attribute id="1" title="age" type="integer"/></attributes>'
        f"<nodes>{people}</nodes><edges>{links}</edges></graph></gexf>"
    )


def gephi_graphml() -> str:
    keys = "".join(
        f'<key attr.name="{n}" attr.type="{t}" for="node" id="{n}"/>'
        for n, t in (
            ("label", "string"),
            ("city", "string"),
            ("age", "int"),
            ("size", "float"),
            ("x", "float"),
            ("y", "float"),
        )
    )
    people = "".join(
        f'<node id="{i}"><data key="label">{i}</data><data key="city">{c}</data><data key="age">{a}</data>'
        f'<data key="size">10.0</data><data key="x">{a}.5</data><data key="y">-{a}.25</data></node>'
        for i, c, a in zip(IDS, CITIES, AGES, strict=True)
    )
    links = "".join(f'<edge id="{n}" source="{a}" target="{b}"/>' for n, (a, b) in enumerate(NAMED))
    return (
        '<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        f'{keys}<graph edgedefault="undirected">{people}{links}</graph></graphml>'
    )


def igraph_graphml() -> str:
    people = "".join(
        f'<node id="n{n}"><data key="v_name">{i}</data><data key="v_city">{c}</data><data key="v_age">{a}</data></node>'
        for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True))
    )
    links = "".join(f'<edge source="n{a}" target="n{b}"></edge>' for a, b in PAIRS)
    return (
        '<?xml version="1.0" encoding="UTF-8"?><graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="v_name" for="node" attr.name="name" attr.type="string"/>'
        '<key id="v_city" for="node" attr.name="city" attr.type="string"/>'
        '<key id="v_age" for="node" attr.name="age" attr.type="double"/>'
        f'<graph id="G" edgedefault="undirected">{people}{links}</graph></graphml>'
    )


def igraph_gml() -> str:
    people = "".join(
        f'  node\n  [\n    id {n}\n    name "{i}"\n    city "{c}"\n    age {a}\n  ]\n'
        for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True))
    )
    links = "".join(f"  edge\n  [\n    source {a}\n    target {b}\n  ]\n" for a, b in PAIRS)
    return f'Creator "igraph version 0.10.4"\nVersion 1\ngraph\n[\n  directed 0\n{people}{links}]\n'


def pyg(kind: str) -> Files:
    import torch
    from torch_geometric.data import Data, HeteroData
    from torch_geometric.transforms import ToUndirected

    ends, city = torch.tensor(PAIRS).T, torch.tensor([c == "S" for c in CITIES]).long()
    if kind == "HeteroData":
        made = HeteroData()
        made["person"].city = city
        made["person", "knows", "person"].edge_index = torch.cat([ends, ends.flip(0)], 1)
    elif kind == "two kinds":
        made = HeteroData()
        made["person"].city, made["club"].num_nodes = city, 3
        made["person", "in", "club"].edge_index = torch.tensor([[0, 1, 2], [0, 1, 2]])
    else:
        made = Data(edge_index=ends, city=city, num_nodes=12)
        made = ToUndirected()(made)
    buffer = io.BytesIO()
    torch.save(made, buffer)
    return {"club.pt": buffer.getvalue()}


def scipy_matrix() -> Files:
    import numpy as np
    from scipy import sparse

    dense = np.zeros((12, 12), dtype=int)
    for a, b in PAIRS:
        dense[a, b] = dense[b, a] = 1
    buffer = io.BytesIO()
    sparse.save_npz(buffer, sparse.csr_array(dense))
    return {"edges.npz": buffer.getvalue(), "nodes.csv": nodes()}


def mtx() -> str:
    head = "%%MatrixMarket matrix coordinate pattern symmetric\n"
    return f"{head}12 12 {len(PAIRS)}\n" + rows([(b + 1, a + 1) for a, b in PAIRS], " ")


def pajek() -> str:
    people = "".join(f'{n} "{i}" {0.1 * n:.4f} 0.5000 ellipse\r\n' for n, i in enumerate(IDS, 1))
    return f"*Vertices 12\r\n{people}*Edges\r\n" + rows([(a + 1, b + 1, 1) for a, b in PAIRS], " ", "\r\n")


def clu() -> str:
    return "*Vertices 12\r\n" + "".join(f"{1 + (c == 'S')}\r\n" for c in CITIES)


def ego() -> Files:
    names = "0 city;id;anonymized feature 1\n1 city;id;anonymized feature 2\n"
    feat = rows([(i, int(c == "N"), int(c == "S")) for i, c in zip(IDS, CITIES, strict=True)], " ")
    return {"0.edges": rows([*NAMED, *((b, a) for a, b in NAMED)], " "), "0.feat": feat, "0.featnames": names}


def qualtrics() -> Files:
    head = ["StartDate", "ResponseId", "city", "age"]
    text = ["Start Date", "Response ID", "In which city do you live?", "How old are you?"]
    ids = [
        '"{""ImportId"":""startDate""}"',
        '"{""ImportId"":""_recordId""}"',
        '"{""ImportId"":""QID1""}"',
        '"{""ImportId"":""QID2""}"',
    ]
    people = [("2024-01-01", i, c, a) for i, c, a in zip(IDS, CITIES, AGES, strict=True)]
    return {"edges.csv": edges(), "nodes.csv": rows([head, text, ids, *people])}


def gephi_tables() -> Files:
    people = rows(
        [
            ("Id", "Label", "timeset", "city", "age"),
            *((i, i, "", c, a) for i, c, a in zip(IDS, CITIES, AGES, strict=True)),
        ]
    )
    links = rows(
        [("Source", "Target", "Type", "Id", "Label", "timeset", "Weight")]
        + [(a, b, "Undirected", n, "", "", "1.0") for n, (a, b) in enumerate(NAMED)]
    )
    return {"nodes.csv": people, "edges.csv": links}


def cytoscape_tables() -> Files:
    people = rows(
        [
            ("SUID", "name", "shared name", "selected", "city"),
            *((100 + n, i, i, "false", c) for n, (i, c) in enumerate(zip(IDS, CITIES, strict=True))),
        ]
    )
    links = rows(
        [("SUID", "interaction", "name", "selected", "shared interaction", "shared name")]
        + [
            (200 + n, "knows", f"{a} (knows) {b}", "false", "knows", f"{a} (knows) {b}")
            for n, (a, b) in enumerate(NAMED)
        ]
    )
    return {"club default node.csv": people, "club default edge.csv": links}


def neo4j() -> Files:
    people = rows(
        [
            ("personId:ID", "city", "age:int", ":LABEL"),
            *((i, c, a, "Person") for i, c, a in zip(IDS, CITIES, AGES, strict=True)),
        ]
    )
    links = rows([(":START_ID", ":END_ID", ":TYPE"), *((a, b, "KNOWS") for a, b in NAMED)])
    return {"people.csv": people, "knows.csv": links}


def dgl() -> Files:
    people = "node_id,label,feat\n" + "".join(
        f'{i},{int(c == "S")},"0.5, {a}.25"\n' for i, c, a in zip(IDS, CITIES, AGES, strict=True)
    )
    return {"nodes.csv": people, "edges.csv": rows([("src_id", "dst_id"), *NAMED])}


def movielens_latest() -> Files:
    ratings = rows(
        [
            ("userId", "movieId", "rating", "timestamp"),
            *((1 + n % 9, i, "4.0", 964982703 + n) for n, (i, _) in enumerate(NAMED)),
        ]
    )
    films = "movieId,title,genres\n" + "".join(f'{i},"Film, The ({1990 + n})",Drama|War\n' for n, i in enumerate(IDS))
    return {"ratings.csv": ratings, "movies.csv": films}


def movielens_1m() -> Files:
    users = rows([(n, "FM"[n % 2], (18, 25, 35)[n % 3], n % 5, "12345") for n in range(1, 13)], "::")
    ratings = rows([(a + 1, 100 + b, 4, 978300760 + a) for a, b in PAIRS], "::")
    return {
        "users.dat": users,
        "ratings.dat": ratings,
        "movies.dat": rows([(100 + n, f"Film {n} (1995)", "Drama") for n in range(12)], "::"),
    }


def movielens_100k() -> Files:
    users = rows([(n, 20 + n, "FM"[n % 2], ("artist", "other")[n % 2], "12345") for n in range(1, 13)], "|")
    items = rows(
        [(n, f"Film {n} (1995)", "01-Jan-1995", "", "x", *[int(g == n % 19) for g in range(19)]) for n in range(1, 13)],
        "|",
    )
    return {"u.data": rows([(a + 1, b + 1, 4, 881250949) for a, b in PAIRS], "\t"), "u.user": users, "u.item": items}


def book_crossing() -> Files:
    users = '"User-ID";"Location";"Age"\n' + "".join(
        f'"{i}";"{c.lower()}ville, usa";{"NULL" if n == 3 else chr(34) + str(a) + chr(34)}\n'
        for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True))
    )
    ratings = '"User-ID";"ISBN";"Book-Rating"\n' + "".join(f'"{a}";"0{b * 7919 % 10**9:09d}";"5"\n' for a, b in NAMED)
    return {"BX-Users.csv": users, "BX-Book-Ratings.csv": ratings}


def lastfm_360k() -> Files:
    users = rows(
        [
            (f"{i:040x}", "fm"[n % 2], a, "Germany" if c == "N" else "Spain", "Feb 1, 2007")
            for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True))
        ],
        "\t",
    )
    plays = rows([(f"{a:040x}", f"{b * 6007:036x}", f"artist {b}", 100 + b) for a, b in NAMED], "\t")
    return {"usersha1-profile.tsv": users, "usersha1-artmbid-artname-plays.tsv": plays}


def musae() -> Files:
    people = rows(
        [
            ("id", "days", "mature", "views", "partner", "new_id"),
            *(
                (1000 + i, a, c == "S", 7 * a, "False", n)
                for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True))
            ),
        ]
    )
    return {"musae_DE_edges.csv": rows([("from", "to"), *PAIRS]), "musae_DE_target.csv": people}


def fairgnn() -> Files:
    head = ("user_id", "gender", "region", "AGE", "I_am_working_in_field")
    people = rows(
        [head, *((i, n % 2, int(c == "S"), a, 1) for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True)))]
    )
    return {"region_job.csv": people, "region_job_relationship.txt": rows(NAMED, "\t")}


def row_numbers() -> Files:
    people = rows([("Gender", "Age", "Amount"), *((("Male", "Female")[n % 2], a, 100 + a) for n, a in enumerate(AGES))])
    return {"german.csv": people, "german_edges.txt": rows([(f"{a}.0", f"{b}.0") for a, b in PAIRS], " ")}


def d3(key: str = "id") -> Files:
    """Nodes and links as D3 leaves them once it has placed the nodes."""
    people = [
        {key: str(i), "city": city, "index": n, "x": n / 7, "y": n / 3, "vx": 0.1 / (n + 1), "vy": -0.2 / (n + 1)}
        for n, (i, city) in enumerate(zip(IDS, CITIES, strict=True))
    ]
    place = {i: people[n] for n, i in enumerate(IDS)}
    links = [{"source": place[a], "target": place[b], "index": n} for n, (a, b) in enumerate(NAMED)]
    return {"club.json": json.dumps({"nodes": people, "links": links})}


def named(text: str = "") -> Files:
    return {"edges.csv": text or edges(), "nodes.csv": nodes()}


SNAP = "# Undirected graph: club.txt\n# Nodes: 12 Edges: 24\n# FromNodeId\tToNodeId\n"
REALS: tuple[Real, ...] = (
    Real("pandas", "`to_csv` with its index", pandas_csv),
    Real("pandas", "`to_csv(index=False)`", lambda: pandas_csv(index=False)),
    Real(
        "pandas",
        "`to_csv(index=False, header=False)`",
        lambda: pandas_csv(index=False, header=False),
        words="no-header",
    ),
    Real("pandas", "`to_csv(sep='\\t')`", lambda: pandas_csv(sep="\t", index=False)),
    Real("pandas", "`to_parquet`", pandas_parquet),
    Real(
        "R",
        "`write.csv`, row names in front",
        lambda: {
            "edges.csv": '"","source","target"\n' + rows([(f'"{n}"', a, b) for n, (a, b) in enumerate(NAMED, 1)]),
            "nodes.csv": '"","id","city","age"\n'
            + rows([(f'"{n}"', i, f'"{c}"', a) for n, (i, c, a) in enumerate(zip(IDS, CITIES, AGES, strict=True), 1)]),
        },
    ),
    Real(
        "R",
        "`write.table`, a header shorter than the rows",
        lambda: {
            "edges.csv": '"source" "target"\n' + rows([(f'"{n}"', a, b) for n, (a, b) in enumerate(NAMED, 1)], " "),
            "nodes.csv": nodes(),
        },
        "refused",
        "row.names=FALSE",
    ),
    Real(
        "Excel",
        "a workbook with sheets edges and nodes",
        lambda: {"club.xlsx": workbook(edges=LINES_OF_EDGES, nodes=LINES_OF_NODES)},
    ),
    Real(
        "Excel",
        "edges.xlsx and nodes.xlsx",
        lambda: {"edges.xlsx": workbook(Sheet1=LINES_OF_EDGES), "nodes.xlsx": workbook(Sheet1=LINES_OF_NODES)},
    ),
    Real(
        "Excel",
        "CSV with semicolons and a byte order mark",
        lambda: {"edges.csv": "\ufeff" + edges(";"), "nodes.csv": "\ufeff" + nodes(";")},
    ),
    Real(
        "Excel",
        "CSV with a line `sep=;`",
        lambda: {"edges.csv": "sep=;\n" + edges(";"), "nodes.csv": "sep=;\n" + nodes(";")},
    ),
    Real(
        "Excel",
        "Unicode text (UTF-16)",
        lambda: {"edges.csv": edges("\t").encode("utf-16"), "nodes.csv": nodes("\t").encode("utf-16")},
        "refused",
        "UTF-16 text; save it as UTF-8",
    ),
    Real("Qualtrics", "responses with question texts and import ids", qualtrics, words="survey-rows"),
    Real("SNAP", "list of edges with comments, named edges.csv", lambda: named(SNAP + rows(NAMED, "\t"))),
    Real(
        "SNAP",
        "list of edges, NAME.txt beside nodes.csv",
        lambda: {"club.txt": SNAP + rows(NAMED, "\t"), "nodes.csv": nodes()},
    ),
    Real("SNAP", "ego network with feat and featnames", ego),
    Real(
        "SNAP",
        "trust ratings (source, target, rating, time) without a header",
        lambda: named(rows([(a, b, -3 + n % 7, 1289241911 + n) for n, (a, b) in enumerate(NAMED)])),
    ),
    Real(
        "SNAP",
        "communities, one a line",
        lambda: {"club.top5000.cmty.txt": rows([IDS[:5], IDS[5:]], "\t")},
        "refused",
        "nodes.csv[.gz] or nodes.parquet is missing",
    ),
    Real(
        "KONECT",
        "out.NAME with ent.NAME",
        lambda: {
            "out.club": "% sym unweighted\n" + rows([(a + 1, b + 1) for a, b in PAIRS], " "),
            "ent.club.person.city": "".join(f"{c}\n" for c in CITIES),
        },
        nodes="positions",
    ),
    Real(
        "KONECT",
        "bipartite out.NAME",
        lambda: {"out.club": "% bip unweighted\n" + rows([(a + 1, b + 1) for a, b in PAIRS], " ")},
        "refused",
        "joins two kinds of nodes",
    ),
    Real("Network Repository", "NAME.mtx beside nodes.csv", lambda: {"club.mtx": mtx(), "nodes.csv": nodes()}),
    Real(
        "Network Repository",
        "NAME.mtx alone",
        lambda: {"club.mtx": mtx()},
        "refused",
        "nodes.csv[.gz] or nodes.parquet is missing",
    ),
    Real(
        "Network Repository",
        "NAME.edges and NAME.node_labels",
        lambda: {
            "club.edges": rows(NAMED),
            "club.node_labels": rows([(i, 1 + (c == "S")) for i, c in zip(IDS, CITIES, strict=True)]),
        },
        "described",
    ),
    Real("SciPy", "`save_npz` beside nodes.csv", scipy_matrix),
    Real(
        "SciPy",
        "`mmwrite` beside nodes.csv",
        lambda: {"club.mtx": mtx().replace("pattern symmetric\n", "pattern symmetric\n%\n"), "nodes.csv": nodes()},
    ),
    Real("Pajek", "NAME.net with a partition NAME.clu", lambda: {"club.net": pajek(), "club.clu": clu()}),
    Real("Pajek", "NAME.net of networkx, with values", lambda: networkx_file("net")),
    Real("Gephi", "GEXF 1.3 with a drawing", lambda: {"club.gexf": gephi_gexf()}),
    Real("Gephi", "GraphML with a drawing", lambda: {"club.graphml": gephi_graphml()}, words="drawing-columns"),
    Real("Gephi", "GraphML called NAME.xml", lambda: {"club.xml": gephi_graphml()}, words="drawing-columns"),
    Real(
        "Gephi",
        "GraphML beside GEXF",
        lambda: {"club.graphml": gephi_graphml(), "club.gexf": gephi_gexf()},
        "refused",
        "2 files",
    ),
    Real("Gephi", "tables of nodes and edges", gephi_tables),
    Real("Cytoscape", "node and edge tables", cytoscape_tables, "refused", "no recognised layout"),
    Real("Cytoscape", ".cyjs saved as JSON", lambda: networkx_json("cytoscape"), "refused", "Cytoscape"),
    Real(
        "Cytoscape",
        ".sif",
        lambda: {"club.sif": rows([(a, "knows", b) for a, b in NAMED], "\t")},
        "refused",
        "no recognised layout",
    ),
    Real("networkx", "`write_graphml`", lambda: networkx_file("graphml")),
    Real("networkx", "`write_gexf`", lambda: networkx_file("gexf")),
    Real("networkx", "`write_gml`", lambda: networkx_file("gml")),
    Real("networkx", "`node_link_data`, links", lambda: networkx_json("links")),
    Real("networkx", "`node_link_data`, edges", lambda: networkx_json("edges")),
    Real("D3", "nodes and links after a simulation", d3, words="drawing-columns"),
    Real("D3", "links by the names of nodes", lambda: d3("name"), words="ids-by-values"),
    Real("networkx", "`adjacency_data`", lambda: networkx_json("adjacency"), "refused", "node_link_data"),
    Real("networkx", "`write_edgelist` beside nodes.csv", lambda: networkx_list("edgelist")),
    Real(
        "networkx",
        "`write_adjlist` beside nodes.csv",
        lambda: networkx_list("adjlist"),
        "refused",
        "write a line for each edge",
    ),
    Real("igraph", "GraphML with names", lambda: {"club.graphml": igraph_graphml()}),
    Real("igraph", "GML with names", lambda: {"club.gml": igraph_gml()}),
    Real(
        "igraph",
        "NCOL beside nodes.csv",
        lambda: {"club.ncol": rows([(a, b, 1) for a, b in NAMED], " "), "nodes.csv": nodes()},
    ),
    Real("igraph", "LGL", lambda: {"club.lgl": "# 1\n2\n3\n"}, "refused", "write_ncol"),
    Real("PyG", "`Data` after ToUndirected", lambda: pyg("Data"), nodes="positions"),
    Real("PyG", "`HeteroData` with one kind of nodes", lambda: pyg("HeteroData"), nodes="positions"),
    Real("PyG", "`HeteroData` with two kinds of nodes", lambda: pyg("two kinds"), "refused", "HeteroData"),
    Real("DGL", "nodes.csv and edges.csv", dgl),
    Real("Neo4j", "tables for its import", neo4j, "described"),
    Real("MovieLens", "1M", movielens_1m, nodes=""),
    Real("MovieLens", "100K", movielens_100k, nodes=""),
    Real("MovieLens", "latest: ratings.csv and movies.csv", movielens_latest, "described", nodes=""),
    Real("Book-Crossing", "BX-Users.csv and BX-Book-Ratings.csv", book_crossing, "described", nodes=""),
    Real("LastFM-360K", "profiles and plays without headers", lastfm_360k, "described", nodes=""),
    Real("MUSAE", "NAME_edges.csv and NAME_target.csv", musae, words="columns-by-values", nodes="positions"),
    Real("FairGNN", "region_job.csv with its relationship.txt", fairgnn, nodes=""),
    Real("NIFTY", "german.csv with german_edges.txt", row_numbers, nodes="positions"),
    Real(
        "spreadsheets",
        "a matrix of zeros and ones",
        lambda: {
            "edges.csv": rows(
                [["", *IDS]] + [[IDS[a], *(int((min(a, b), max(a, b)) in PAIRS) for b in range(12))] for a in range(12)]
            ),
            "nodes.csv": nodes(),
        },
        "refused",
        "is a matrix with a row and a column",
    ),
)
