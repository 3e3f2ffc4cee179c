"""The pages of the dashboard, by their address, in the order of the sidebar."""

PAGES = {
    "": "Overview",
    "data": "Data",
    "runs": "Runs",
    "leakage": "Leakage",
    "fairness": "Fairness",
    "tradeoff": "Trade-off",
    "projection": "Projection",
    "whatif": "What-if",
    "report": "Report",
    "method": "Method",
    "paper": "Paper",
}


def heading(title: str) -> str:
    """What a page is headed with."""
    return "UGE audit" if title == "Overview" else title
