"""What-if: a graph edited on trial, and what would change; nothing is written to the user's files.

Each answer names the tier that made it:

    re-judge   the run's embedding as it is, judged with other attribute values, groups or links
    re-encode  one pass of the run's own parameters over the edited edges (GCN, GAT, SGC)
    re-train   a run of its own on the edited graph, compared with the first in pairs
"""
