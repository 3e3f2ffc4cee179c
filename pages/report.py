"""One report of chosen embeddings, to be signed: as HTML, PDF, JSON and CSV, and a model card."""

import time
from functools import partial

import streamlit as st

import uge_core.dashboard as ui

LEFT, RUNS = 0.8, 60.0  # seconds until a field that was left has begun a run of this page, and such a run at most
WHEN = {"": "not said", "before": "before", "after": "after"}
KINDS = {
    "html": ("HTML", "report.html", "text/html", "Text, tables and charts in one file for people."),
    "pdf": ("PDF", "report.pdf", "application/pdf", "The same, printed by the browser on this machine."),
    "json": ("JSON", "report.json", "application/json", "The records themselves; uge rerun trains from it again."),
    "csv": ("CSV", "report.csv", "text/csv", "Every row and group pair of every run for a spreadsheet."),
    "card": ("Model card", "model-card.md", "text/markdown", "Of run B's embedding, to be passed on with it."),
}

st.title("Report")
st.write(
    "What was found, on two pages that can be signed, with an appendix. It needs no network, and every number in it "
    "comes from the stored audits."
)

store = ui.RunStore()
state = st.session_state
newest = state.setdefault("report_newest", {})
newest["made"] = None  # until this run of the page has come to its end
compared = [state["frame_before"], state["frame_after"]]
choices = ui.report_choices(store, compared)
if not choices.rows:
    st.info("No audited run yet. Train one, or audit an embedding, then come back.", icon=":material/info:")
    st.stop()

key = f"report_rows_{state['frame_data']}"
# Who chooses another run A or B wants it in the report; who takes it out there afterwards keeps it out.
if key in state and state.get("report_compared", compared) != compared:
    ui.set_fields(state, {key: [*state[key], *(row for row in choices.asked if row not in state[key])]})
state["report_compared"] = compared
rows = st.multiselect(
    "Embeddings",
    list(choices.rows),
    default=list(choices.first),
    format_func=lambda r: ui.visible(choices.rows[r]),
    key=key,
    persist_state="session",
    help="Each with all its seeds, a row in the report. Run A is what came before, run B what the report is about.",
)
runs = [i for row in rows for i in choices.runs[row]]
with st.expander("Sign-off", icon=":material/signature:", expanded=True):
    st.caption("What is empty is a blank line in the report, to be written on by hand.")
    left, right = st.columns(2)
    who = left.container()
    by, on = left.columns([3, 2])
    typed = {
        "title": who.text_input("Title", ui.Sheet.title, max_chars=200, key="report_title", persist_state="session"),
        "author": who.text_input("Name of who made it", max_chars=200, key="report_author", persist_state="session"),
        "role": who.text_input("Role", max_chars=200, key="report_role", persist_state="session"),
        "purpose": right.text_area(
            "Purpose and scope",
            max_chars=5000,
            height=122,
            key="report_purpose",
            persist_state="session",
            help="What the embedding is for, what the audit covers, and what it does not.",
        ),
        "remarks": right.text_area("Remarks", max_chars=5000, height=78, key="report_remarks", persist_state="session"),
        "threshold_by": by.text_input(
            "Threshold set by",
            max_chars=200,
            key="report_threshold_by",
            persist_state="session",
            help="Who decided from where on a leak is one, or wrote the rules below.",
        ),
        "threshold_on": on.text_input(
            "Set on", max_chars=100, placeholder="a date", key="report_threshold_on", persist_state="session"
        ),
        "threshold_when": left.segmented_control(
            "Set before or after seeing results",
            list(WHEN),
            default="",
            required=True,
            format_func=WHEN.__getitem__,
            key="report_threshold_when",
            persist_state="session",
        ),
        "source": right.text_input(
            "Source of the data",
            max_chars=500,
            placeholder=ui.visible(choices.source) or "their dataset.yaml does not say",
            key="report_source",
            persist_state="session",
        ),
        "licence": right.text_input(
            "Licence of the data",
            max_chars=200,
            placeholder=ui.visible(choices.licence) or "their dataset.yaml does not say",
            key="report_licence",
            persist_state="session",
        ),
    }
with st.expander("Rules and parts", icon=":material/tune:"):
    rules = st.text_area(
        "Rules of a policy (YAML)",
        max_chars=20_000,
        placeholder="- metric: auc\n  attribute: region\n  direction: at_most\n  number: 0.6",
        key="report_rules",
        persist_state="session",
        help="Each rule passes, fails or has not enough evidence, as with uge audit --policy.",
    )
    sections = st.multiselect(
        "Parts of the appendix",
        list(ui.SECTIONS),
        default=list(ui.SECTIONS),
        format_func=ui.SECTIONS.__getitem__,
        key="report_sections",
        persist_state="session",
        help="The runs with their SHA-256 always stand there.",
    )
if not runs:
    st.info("Choose at least one embedding.", icon=":material/info:")
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
try:
    sides = ui.report_sides(store, runs, compared)
    made = ui.contents(
        runs,
        sheet=ui.Sheet(**typed),
        scenarios=scenarios,
        store=store,
        before=sides.before,
        after=sides.after,
        attribute=state["frame_attribute"] or "",
        policy=("rules", rules) if rules.strip() else None,
        sections=sections,
    )
except ui.UgeError as error:
    st.error(ui.plain_text(str(error)), icon=":material/error:")
    st.stop()
st.write(ui.plain_text(sides.words))
newest["made"] = made


def take(name: str) -> bytes:
    """The file as the fields say now: one that is still typed in says so when it is left, which a click here does too."""
    time.sleep(LEFT)
    end = time.monotonic() + RUNS
    while newest["made"] is None and time.monotonic() < end:
        time.sleep(0.05)
    content: bytes = newest["made"][name]()
    return content


row = st.container(horizontal=True)
for name, (label, file, mime, words) in KINDS.items():
    missing = name == "pdf" and ui.browser() is None
    row.download_button(
        label,
        partial(take, name),
        file_name=file,
        mime=mime,
        icon=":material/download:",
        disabled=missing,
        key=f"download-{name}",
        on_click="ignore",
        width=140,
        help="No Chromium or Chrome was found on this machine; take HTML, which prints well." if missing else words,
    )
st.caption(
    "Aggregates only: no format holds a node, but for those that a chosen scenario names. Each prints the SHA-256 "
    "of the records. `uge verify` checks whichever file you have; `uge rerun` trains it again."
)

if st.toggle("Preview", help="The HTML file as it will be."):
    st.iframe(made["html"]().decode(), height=1100)
