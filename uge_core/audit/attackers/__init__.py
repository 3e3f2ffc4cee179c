"""Attackers, one plug-in a file: each learns to read an attribute out of vectors, in its own way."""
