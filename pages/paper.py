"""The paper's tables and figures, published and trained again."""

import streamlit as st

import uge_core.dashboard as ui

ICONS = {
    "holds": "check_circle",
    "does not hold": "cancel",
    "not distinguishable": "drag_handle",
    "not measured": "question_mark",
    "not measured in full": "question_mark",
}
HELP = {
    "published": "The paper's number.",
    "ours": "As the paper measures, with a 95 % interval.",
    "difference": "Ours less the published number.",
    "verdict": "Within the interval: the published number lies in ours. Direction holds: ours differs from no debiasing as "
    "the published one does. Not distinguishable: no difference from no debiasing is shown. Differs: neither. No interval: "
    "what random vectors give is told without one.",
    "as measured here": "The strongest attacker on people whose values training did not see, attribute-matched NDCG@10, or "
    "the gap of calibrated probabilities.",
    "why": "What the verdict rests on.",
}
plain = ui.plain_text

st.title("Paper")
st.write(
    "The tables and figures of the paper behind UGE, trained again: each published number beside ours, and what becomes "
    "of what the paper says."
)
recipes = ui.paper_choices()
name = st.selectbox(
    "Table or figure", list(recipes), format_func=recipes.__getitem__, key="paper_recipe", bind="query-params"
)
table = ui.shipped_table(name)
recipe = table.recipe
backbone = recipe.backbones[0]
if len(recipe.backbones) > 1:
    backbone = st.segmented_control("Backbone", recipe.backbones, default=backbone, required=True, key="paper_backbone")
st.caption(f"{plain(recipe.source)}. {table.measured_words}")
if not table.seeds:
    st.info(
        f"No result of it comes with this version. `uge reproduce {name} DATA --rows rows.jsonl` trains it, where DATA is "
        f"{recipe.data}.",
        icon=":material/info:",
    )

shown = [claim for claim in table.claims if claim.backbone == backbone]
for heading, ours in (("What the paper says", False), ("What is asked besides", True)):
    if any(claim.ours == ours for claim in shown):
        st.header(heading)
    for claim in (claim for claim in shown if claim.ours == ours):
        judged = [
            f"- :material/{ICONS[verdict]}: {how}: {verdict}, {plain(why)}." for how, verdict, why in claim.judged
        ]
        st.markdown("\n".join([f"**{plain(claim.words)}**\n", *judged]))

figure = ui.paper_figure(table, backbone, dark=st.context.theme.type == "dark")
if figure is not None and table.seeds:
    st.header("Figure")
    st.plotly_chart(
        figure,
        config=ui.CHART_CONFIG,
        alt=f"{recipe.title}, {backbone}; the table below has its figures",
        key=f"paper {name} {backbone}",
    )

st.header("Numbers")
st.dataframe(
    ui.visible_cells(ui.paper_rows(table, backbone)),
    hide_index=True,
    alt=f"{recipe.title}: published and ours",
    column_config={key: st.column_config.Column(help=words) for key, words in HELP.items()},
)
st.download_button(
    "CSV",
    ui.paper_csv(table),
    file_name=f"{name}.csv",
    mime="text/csv",
    icon=":material/download:",
    on_click="ignore",
    help="All numbers, of all backbones.",
)
if recipe.left_open:
    st.header("What the paper leaves open")
    for words in recipe.left_open:
        st.markdown(f"- {plain(words)}")
