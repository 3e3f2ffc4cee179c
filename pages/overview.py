"""What is found about a graph's embeddings, and what to do next?"""

from typing import Any

import streamlit as st

import uge_core.dashboard as ui

plain = ui.plain_text
state = st.session_state
store = ui.RunStore()
dark = st.context.theme.type == "dark"
POLICY = {"pass": "check_circle", "fail": "error", "not enough evidence": "question_mark"}


def draw(card: Any) -> None:
    """One attribute: the verdict, its picture, what it cost, and the next step."""
    with st.container(border=True, height="stretch", key=f"card-{card.attribute}"):
        # An icon and words say which verdict it is; the colour alone says nothing.
        st.subheader(f":material/{ui.VERDICT_ICONS[card.finding]}: {plain(card.headline)}")
        st.html(ui.gauge(card, dark=dark))
        st.markdown(plain(card.sentence))
        if card.cost and card.treated:
            st.markdown(f":material/link: {plain(card.cost)}")
        if not card.treated and card.before is not None:
            st.caption(f"{plain(card.now.label)} was not trained to hide {plain(card.attribute)}.")
        if card.policy:
            st.markdown(f":material/{POLICY[card.policy]}: Policy {plain(card.policy_words)}")
        at = {"graph": summary.source} if summary.source and card.step.page in ("runs", "data") else None
        if at and card.step.page == "runs":
            at |= {"treat": card.attribute}
        st.page_link(
            f"{card.step.page}.py",
            label=card.step.label,
            icon=":material/arrow_forward:",
            help=card.step.why,
            query_params=at,
        )
        with st.expander("How sure is that?"):
            for words in card.details:
                st.caption(plain(words))


def table_of_runs(table: Any) -> None:
    number = st.column_config.NumberColumn
    st.dataframe(
        ui.visible_cells(table),
        hide_index=True,
        column_config={
            "Run": st.column_config.TextColumn("Method", pinned=True, width="medium"),
            "Seeds": number(format="%d", help="Training seeds whose mean the figures are."),
            "Treated": st.column_config.CheckboxColumn(help="The embedding was trained to hide this attribute."),
            "Exposure": st.column_config.TextColumn(
                "Tested on",
                help="unseen: on people hidden from training; seen: on people whose values training saw, so that it "
                "may look better than it is; not read: training reads no attribute; not known: an embedding from "
                "elsewhere.",
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
                "treats all groups alike, so no other figure of it is a verdict; a column further on has the reason."
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
        alt="Leakage and link quality of the stored runs, one row per method, λ and attribute",
    )
    st.caption(
        "One row per method, λ and attribute; click a column's head to sort. Intervals are 95 %, over the people tested "
        "and, of several seeds, over these too."
    )


st.title("UGE audit")
st.markdown(
    "Measures how well a sensitive attribute of people can be read from the embedding of their graph, how unequally "
    "links are predicted, and what it costs to mitigate that."
)
summary = ui.overview(
    store,
    data=state["frame_data"],
    before=state["frame_before"],
    after=state["frame_after"],
    attribute=state["frame_attribute"],
)
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
        st.info(
            f"**This is the sample audit**, made with version {summary.shipped} on a CPU. It is about `sample:town`, a "
            "made-up town whose bias-free graph is known, not about your data.",
            icon=":material/school:",
        )
    if summary.only_shipped and not ui.tour_over(store):
        with st.container(horizontal=True, key="tour-offer"):
            st.button(
                "Take the tour: five stops, two minutes",
                key="tour_begin",
                type="primary",
                icon=":material/route:",
                on_click=lambda: state.update(tour=0),
            )
            st.button("No tour", key="tour_decline", type="tertiary", on_click=lambda: ui.end_tour(store))
            st.page_link("data.py", label="Bring your own graph", icon=":material/database_upload:")
    st.header(f"What is found about {plain(summary.data)}")
    for first in range(0, len(summary.cards), 2):
        for card, column in zip(summary.cards[first : first + 2], st.columns(2), strict=False):
            with column:
                draw(card)
    if not summary.cards:
        st.info("The audited runs' data have no attribute of people, so nothing can be read.", icon=":material/info:")
    st.caption(
        "Verdicts are of run B, beside run A, both chosen above. Low leakage under these attackers is no proof that "
        "nothing can be read."
    )
    counted = "The one run" if summary.num_runs == 1 else f"All {summary.num_runs:,} runs"
    with st.expander(f"{counted} of this graph", icon=":material/table:"):
        table_of_runs(summary.table)
if len(summary.unfinished):
    with st.expander(f"Runs without an audit: {len(summary.unfinished):,}", icon=":material/pending:"):
        st.dataframe(
            ui.visible_cells(summary.unfinished), hide_index=True, alt="Runs without an audit, with the reason"
        )
