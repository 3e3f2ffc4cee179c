"""Compiled loops over plain arrays, and nothing else."""
