"""One report of chosen runs, as HTML, PDF, JSON and CSV."""

import streamlit as st

import uge_core.dashboard as ui

st.title("Report")
st.write("One file that stands alone: it needs no network, and every number in it comes from the stored audits.")

store = ui.RunStore()
choices = ui.leakage_choices(store)
if not choices.runs:
    st.info("No audited run yet. Train one, or audit an embedding, then come back.", icon=":material/info:")
    st.stop()

state = st.session_state
# The compared runs, then others of the data in the sidebar; another choice there starts anew.
here = dict.fromkeys([r for r in (state["frame_before"], state["frame_after"], *state["frame_runs"]) if r])
first = list(here)[:6]
runs = st.multiselect(
    "Runs",
    list(choices.runs),
    default=[r for r in choices.runs if r in first],
    format_func=lambda r: ui.visible(choices.runs[r]),
    key=f"report_runs_{'_'.join(first[:2])}",
    help="Each is told in full: leakage, link quality and group differences, with intervals and what chance gives.",
)
with st.expander("Title, author and purpose", icon=":material/edit:"):
    sheet = ui.Sheet(
        st.text_input("Title", ui.Sheet.title, max_chars=200),
        st.text_input("Who made the audit", max_chars=200),
        st.text_area(
            "Purpose and scope",
            max_chars=5000,
            help="What the embedding is for, what the audit covers, and what it does not. It goes into the report "
            "as you type it.",
        ),
    )
if not runs:
    st.info("Choose at least one run.", icon=":material/info:")
    st.stop()

stored = ui.whatif_of_runs(store, runs)
scenarios = []
if stored:
    scenarios = st.multiselect(
        "What-if scenarios",
        list(stored),
        format_func=lambda s: ui.visible(stored[s]),
        key="report_scenarios",
        help="Edits, hash, and what these runs gave before and after. An edit is told with the nodes it names.",
    )
if ui.naming(store, scenarios) and not st.checkbox(
    "Write sensitive personal data: edits may name people and what becomes of their values", key="report_sensitive"
):
    st.caption("The scenarios are left out until this is ticked.")
    scenarios = []
made = ui.contents(runs, sheet=sheet, scenarios=scenarios, store=store)
columns = st.columns(4)
kinds = {
    "html": ("HTML", "text/html", "Text, tables and charts in one file for people."),
    "pdf": ("PDF", "application/pdf", "The same page, printed by the browser on this machine."),
    "json": ("JSON", "application/json", "The records themselves."),
    "csv": ("CSV", "text/csv", "Every row and group pair for a spreadsheet."),
}
for column, (name, (label, mime, words)) in zip(columns, kinds.items(), strict=True):
    missing = name == "pdf" and ui.browser() is None
    column.download_button(
        label,
        made[name],
        file_name=f"report.{name}",
        mime=mime,
        icon=":material/download:",
        width="stretch",
        disabled=missing,
        key=f"download-{name}",
        on_click="ignore",
        help="No Chromium or Chrome was found on this machine; take HTML, which prints well." if missing else words,
    )
st.caption(
    "Aggregates only: no format holds a node, but for those that a chosen scenario names. Each prints the SHA-256 "
    "of every record; uge verify checks whichever file you have."
)

if st.toggle("Preview", help="The HTML file as it will be; charts included."):
    st.iframe(made["html"]().decode(), height=900)
