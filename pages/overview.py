"""Which runs are there, what do they give away, and what did that cost?"""

import streamlit as st

import uge_core.dashboard as ui

PATH = (
    (
        "leakage",
        "Leakage",
        "How well an attacker guesses each attribute from the vectors, beside what guessing alone gives.",
    ),
    ("tradeoff", "Trade-off", "Move λ: what less leakage costs in link quality, and where nothing is gained any more."),
    ("fairness", "Fairness", "Which pairs of groups get links predicted less often, and what the other run changed."),
    ("projection", "Projection", "The same people before and after, as a picture; select some and see who they are."),
    ("whatif", "What-if", "Change a value or an edge, and see which numbers move."),
    ("report", "Report", "Put the runs that matter into one file that others can check."),
    ("data", "Data", "Then bring your own graph: two tables, looked at before anything is trained."),
)

st.title("Overview")
st.write("What do the stored embeddings give away, and what did mitigation cost?")

summary = ui.overview(ui.RunStore())

if not summary.num_runs:
    st.info(
        f"No audited run in `{summary.root}` yet. Half a minute on a sample makes a first four; then reload this page:",
        icon=":material/info:",
    )
    st.code(summary.first_command, language="bash", wrap_lines=True)
    st.write(
        "`sample:town` is a made-up town of 2,000 people that comes with the app. Put your own folder in its place: "
        "`edges.csv` (two columns of node ids) and `nodes.csv` (an id and one column per attribute), or another "
        "layout of docs/data.md. `uge data inspect FOLDER` shows how it is read; in a checkout `uge` is "
        "`.venv/bin/uge`."
    )
else:
    if summary.shipped:
        count, version = summary.shipped
        st.info(
            f"**This is the sample audit.** {'Its one run' if count == 1 else f'Its {count} runs'} came with the "
            f"app (version {version}, trained on a CPU) and are "
            "about `sample:town`, a made-up town of 2,000 people whose "
            "bias-free graph is known. They are not about your data.",
            icon=":material/school:",
        )
        with st.expander("A two-minute path through it", icon=":material/route:", expanded=count == summary.num_runs):
            for page, title, words in PATH:
                left, right = st.columns([1, 4], vertical_alignment="center")
                left.page_link(f"{page}.py", label=title, icon=":material/arrow_forward:")
                right.markdown(words)
    for sentence in summary.sentences:
        st.markdown(f"**{ui.plain_text(sentence.about)}**: {ui.plain_text(sentence.text)}")
    st.header("Runs", help="One row per run and attribute. Each number stands beside what guessing would give.")
    number = st.column_config.NumberColumn
    st.dataframe(
        ui.visible_cells(summary.table),
        hide_index=True,
        column_config={
            "Run": st.column_config.TextColumn(pinned=True, width="medium"),
            "Treated": st.column_config.CheckboxColumn(help="The run was debiased for this attribute."),
            "Exposure": st.column_config.TextColumn(
                help="unseen: measured on people whose values training did not see; seen: on people whose values it "
                "saw, so the run may look better than it is; not read: training reads no attribute; not known: "
                "an embedding from elsewhere."
            ),
            "Micro-F1": number(
                "↓ Micro-F1", format="%.3f", help="Share of right answers of the strongest attacker; lower is better."
            ),
            "majority": number("majority", format="%.3f", help="Always answering the commonest value."),
            "random": number("random", format="%.3f", help="The same attacker on random embeddings."),
            "AUC": number(
                "↓ AUC",
                format="%.3f",
                help="Of two people with different values, how often the strongest attacker picks the right one; "
                "lower is better, 0.5 is a coin.",
            ),
            "random AUC": number("random AUC", format="%.3f", help="The same attacker on random embeddings."),
            "people": number("n people", format="%d", help="People the attacker was tested on."),
            "Usable": st.column_config.TextColumn(
                help="Whether the embedding says anything about links at all. One that does not leaks nothing and "
                "treats all groups alike, so no other figure of it is a verdict; the last column has the reason."
            ),
            "matched NDCG@10": number(
                "↑ matched NDCG@10",
                format="%.3f",
                help="How well held-out links are ranked among strangers of the friend's own group, so that knowing "
                "the attribute gains nothing; higher is better.",
            ),
            "degree, matched": number("degree alone", format="%.3f", help="The training degree as an embedding."),
            "random, matched": number("random order", format="%.3f", help="Ranking at random."),
            "links": number("n links", format="%d", help="Held-out links that were ranked among strangers."),
            "NDCG@10": number(
                "↑ NDCG@10",
                format="%.3f",
                help="The same among all strangers, as in the paper; it also pays for reading the attribute.",
            ),
            "degree NDCG": number("degree NDCG", format="%.3f", help="The training degree as an embedding."),
            "random NDCG": number("random NDCG", format="%.3f", help="Ranking at random."),
            "ranked": number("n ranked", format="%d", help="People whose held-out links were ranked."),
        },
        alt="Leakage and link quality of the stored runs, one row per run and attribute",
    )
    st.caption(
        "Intervals are over the people tested, for one training seed; they do not cover what another seed would give. "
        "Low leakage under these attackers is no proof that nothing can be read."
    )
if len(summary.unfinished):
    st.header("Not audited")
    st.dataframe(ui.visible_cells(summary.unfinished), hide_index=True, alt="Runs without an audit, with the reason")
