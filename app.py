"""The dashboard: `uge app`, `make app` or `streamlit run app.py`."""

import streamlit as st

# pages/main.py, not this file, holds the frame: beside a folder called "pages" Streamlit would open a
# deep link without ever running its entry script.
app = st.App("pages/main.py")
