"""What does less leakage cost in link quality, and which lambda is worth it?"""

import streamlit as st

import uge_core as uge

EXPOSURES = {"unseen": "Unseen values", "seen": "Seen values"}
METRICS = {name: uge.TRADEOFF_METRICS[name] for name in ("auc", "micro_f1", "normalised")}

state = st.session_state

st.title("Trade-off")
st.write("What does less leakage cost in link quality, and which lambda is worth it?")

store = uge.RunStore()
if not state["frame_before"]:
    st.info("No audited run yet. The Overview page shows the command that makes a first one.", icon=":material/info:")
    st.stop()
if not state["frame_attribute"]:
    st.info("The audited runs' data have no attribute of people, so nothing can be read.", icon=":material/info:")
    st.stop()


@st.fragment
def explore(view: uge.TradeoffView) -> None:
    """The chart and the lambda explorer; only this part runs when the slider moves."""
    dark = st.context.theme.type == "dark"
    chosen = None
    if view.series:
        left, right = st.columns([1, 2])
        series = left.selectbox("Method", view.series, key="method", help="The methods that have a λ.")
        if state.get("lambda") not in view.lambdas:
            state.pop("lambda", None)
        lam = right.select_slider(
            "λ", view.lambdas, key="lambda", bind="query-params", format_func=lambda v: f"{v:g}",
            help="Snaps to trained values; nothing between them is made up. Arrow keys move it.",
        )  # fmt: skip
        chosen = uge.lambda_view(view, series, lam)
    if chosen and chosen.point:
        for column, (name, value, ends, change) in zip(st.columns(len(chosen.figures)), chosen.figures, strict=True):
            column.metric(
                name, value, change, delta_color="off", delta_description="from no debiasing" if change else None
            )
            column.caption(ends)
        st.markdown(uge.plain_text(chosen.sentence))
    elif chosen:
        st.info(f"{uge.plain_text(chosen.sentence)} This trains it:", icon=":material/model_training:")
        st.code(chosen.command, language="bash", wrap_lines=True)
    ring = (chosen.point.series, chosen.point.lam) if chosen and chosen.point else None
    st.plotly_chart(
        uge.tradeoff_figure(view, selected=ring, dark=dark), config=uge.CHART_CONFIG, alt=view.alt, key="tradeoff"
    )
    st.caption(uge.plain_text(view.caption))
    for remark in view.remarks:
        st.caption(uge.plain_text(remark))
    if chosen and chosen.bars and len(chosen.bars.table):
        st.subheader(uge.plain_text(chosen.bars.title))
        st.plotly_chart(
            uge.attributes_figure(chosen.bars, dark=dark), config=uge.CHART_CONFIG, alt=chosen.bars.alt, key="bars"
        )
        st.caption(uge.plain_text(chosen.bars.caption))


left, middle, right = st.columns(3)
metric = left.segmented_control(
    "Leakage as", list(METRICS), default="auc", required=True, format_func=lambda m: METRICS[m], key="measure",
    bind="query-params", help="Normalised: 0 is always answering the commonest value, 1 is always being right.",
)  # fmt: skip
exposure = middle.segmented_control(
    "Measured on", list(EXPOSURES), default="unseen", required=True, format_func=lambda e: EXPOSURES[e], key="on",
    bind="query-params",
    help="Unseen: training did not see the tested people's values. Seen: it may have, as in the paper, and a method that did looks better than it is.",
)  # fmt: skip
view = uge.tradeoff_view(
    store, data=state["frame_data"], attribute=state["frame_attribute"], metric=metric, exposure=exposure,
    setting=state.get("setting"), like=state["frame_before"],
)  # fmt: skip
if len(view.settings) > 1:
    if state.get("setting") not in view.settings:
        state["setting"] = view.setting
    right.selectbox("Setting", view.settings, key="setting", help="Only runs that share all of this are compared.")
st.subheader(uge.plain_text(view.title))
if len(view.table):
    explore(view)
    with st.expander("Show table", icon=":material/table:"):
        st.dataframe(view.table, hide_index=True, alt=view.alt)
    st.download_button(
        "Download CSV",
        view.csv,
        file_name="tradeoff.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/download:",
    )
