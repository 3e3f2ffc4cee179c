"""One loop trains a whole grid: config, members, edge loss, checkpoints."""
