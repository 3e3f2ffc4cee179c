"""The bench: our engine against the same training written plainly, as ratios within one run."""
