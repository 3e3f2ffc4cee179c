"""The same steps from a terminal, the machine check and the timings."""
