"""Which runs are there, what do they give away, and what did that cost?"""

import streamlit as st

import uge_core as uge

st.title("Overview")
st.write("What do the stored embeddings give away, and what did mitigation cost?")

found = uge.overview(uge.RunStore())

if not found.num_runs:
    st.info(
        f"No audited run in `{found.root}` yet. Half a minute on a sample makes a first four; then reload this page:",
        icon=":material/info:",
    )
    st.code(found.first_command, language="bash", wrap_lines=True)
    st.write(
        "`sample:town` is a made-up town of 2,000 people that comes with the app. Put your own folder in its place: "
        "`edges.csv` (two columns of node ids) and `nodes.csv` (an id and one column per attribute), or another "
        "layout of the README. `uge data inspect FOLDER` shows how it is read; in a checkout `uge` is `.venv/bin/uge`."
    )
else:
    for sentence in found.sentences:
        st.markdown(f"**{uge.plain_text(sentence.about)}**: {uge.plain_text(sentence.text)}")
    st.subheader("Runs", help="One row per run and attribute. Each number stands beside what guessing would give.")
    number = st.column_config.NumberColumn
    st.dataframe(
        found.table,
        hide_index=True,
        column_config={
            "Run": st.column_config.TextColumn(pinned=True, width="medium"),
            "Treated": st.column_config.CheckboxColumn(help="The run was debiased for this attribute."),
            "Exposure": st.column_config.TextColumn(
                help="unseen: measured on people whose values training did not see; seen: on people whose values it saw, so the run may look better than it is; not read: training reads no attribute."
            ),
            "Micro-F1": number(
                "↓ Micro-F1", format="%.3f", help="Share of right answers of the strongest attacker; lower is better."
            ),
            "majority": number("majority", format="%.3f", help="Always answering the commonest value."),
            "random": number("random", format="%.3f", help="The same attacker on random embeddings."),
            "AUC": number(
                "↓ AUC",
                format="%.3f",
                help="Of two people with different values, how often the strongest attacker picks the right one; lower is better, 0.5 is a coin.",
            ),
            "random AUC": number("random AUC", format="%.3f", help="The same attacker on random embeddings."),
            "people": number("n people", format="%d", help="People the attacker was tested on."),
            "NDCG@10": number("↑ NDCG@10", format="%.3f", help="How well held-out links are ranked; higher is better."),
            "random NDCG": number("random NDCG", format="%.3f", help="Ranking at random."),
            "ranked": number("n ranked", format="%d", help="People whose held-out links were ranked."),
        },
        alt="Leakage and link quality of the stored runs, one row per run and attribute",
    )
    st.caption(
        "Intervals are over the people tested, for one training seed; they do not cover what another seed would give. "
        "Low leakage under these attackers is no proof that nothing can be read."
    )
if len(found.unfinished):
    st.subheader("Not audited")
    st.dataframe(found.unfinished, hide_index=True, alt="Runs without an audit, with the reason")
