"""Graphs with a planted truth: the samples that ship, and made ones of any size."""
