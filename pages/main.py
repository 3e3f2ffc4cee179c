"""The frame every page stands in: page configuration, navigation, and which store is shown."""

from pathlib import Path

import streamlit as st

import uge_core as uge

st.set_page_config(page_title="UGE audit", page_icon="⚖️", layout="wide")

here = Path(__file__).resolve().parent
page = st.navigation(
    {
        "Start": [st.Page(here / "overview.py", title="Overview", icon=":material/home:", default=True)],
        "Inspect": [st.Page(here / "leakage.py", title="Leakage", icon=":material/visibility:", url_path="leakage")],
    }
)
store = uge.RunStore()
with st.sidebar:
    st.caption(f":material/database: Runs in `{store.root}`")
try:
    page.run()
except uge.UgeError as error:
    st.error(str(error), icon=":material/error:")
