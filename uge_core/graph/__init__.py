"""What a graph of people is: nodes, attributes, splits, pair scores, walks, and which small numbers are suppressed."""
