"""How well can an attacker read an attribute out of each run's embedding?"""

import streamlit as st

import uge_core.dashboard as ui

EXPOSURES = {"unseen": "People hidden from training", "seen": "People training saw"}
ORDERS = {"method": "By method", "least": "Least read first"}
PICTURES = {"grid": "Side by side", "list": "As a list"}

st.title("Leakage")
st.write("How well can an attacker read an attribute out of each run's embedding?")

store = ui.RunStore()
choices = ui.leakage_choices(store)

if not choices.runs:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not choices.attributes or not st.session_state["frame_attribute"]:
    st.info("The audited runs' data have no attribute of people, so there is nothing to read.", icon=":material/info:")
    st.stop()

row = st.container(horizontal=True)
exposure = row.segmented_control(
    "Measured on",
    choices.exposures,
    default=choices.exposures[0],
    required=True,
    format_func=lambda e: EXPOSURES[e],
    key="exposure",
    bind="query-params",
    help="Hidden: training did not see the tested people's values. Saw: it may have, as in the paper, and a method "
    "that did looks better than it is.",
)
attacker = row.segmented_control(
    "Attacker",
    list(choices.attackers),
    default=next(iter(choices.attackers)),
    required=True,
    format_func=lambda a: choices.attackers[a],
    key="attacker",
    bind="query-params",
    help="Strongest: whichever of the attackers reads most, for each run and attribute.",
)
metric = row.segmented_control(
    "Metric",
    list(choices.metrics),
    default=next(iter(choices.metrics)),
    required=True,
    format_func=lambda m: choices.metrics[m],
    key="metric",
    bind="query-params",
)
order = row.segmented_control(
    "Order",
    list(ORDERS),
    default="method",
    required=True,
    format_func=ORDERS.__getitem__,
    key="order",
    bind="query-params",
)
everything = st.toggle(
    "All attributes", key="all", bind="query-params", help="Not only the audited one that is chosen above."
)
here = [r for r in choices.runs if set(choices.ids[r]) & set(st.session_state["frame_runs"])]
if not set(st.session_state.get("run", here)) <= set(here):
    ui.set_fields(st.session_state, {"run": here})  # another data set was chosen
with st.expander(
    f"Methods shown: {len(st.session_state.get('run', here))} of {len(here)}", icon=":material/filter_list:"
):
    runs = st.multiselect(
        "Methods",
        here,
        default=here,
        format_func=lambda r: ui.visible(choices.runs.get(r) or str(r)),
        key="run",
        bind="query-params",
        label_visibility="collapsed",
    )

if not runs:
    st.info("Choose at least one method.", icon=":material/info:")
    st.stop()
attributes = None if everything else [st.session_state["frame_attribute"]]
view = ui.leakage_view(
    store,
    exposure=exposure,
    attacker=attacker,
    metric=metric,
    runs=[i for r in runs for i in choices.ids[r]],
    attributes=attributes,
    order=order,
)
st.header(ui.plain_text(view.title))
for remark in view.remarks if view.table.empty else ():
    st.caption(ui.plain_text(remark))
if len(view.table):
    draw = ui.leakage_figure
    if view.table["attribute"].nunique() > 1:
        picture = st.segmented_control(
            "Picture",
            list(PICTURES),
            default="grid",
            required=True,
            format_func=PICTURES.__getitem__,
            key="picture",
            bind="query-params",
            help="The list has every figure in words, and fits a phone.",
        )
        draw = ui.leakage_grid if picture == "grid" else ui.leakage_figure
    st.plotly_chart(
        draw(view, dark=st.context.theme.type == "dark"), config=ui.CHART_CONFIG, alt=view.alt, key="leakage"
    )
    for words in (view.caption, *view.remarks):
        st.caption(ui.plain_text(words))
    with st.expander("Show table", icon=":material/table:"):
        st.dataframe(ui.visible_cells(view.shown), hide_index=True, alt=view.alt)
    st.download_button(
        "Download CSV",
        view.csv,
        file_name="leakage.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
