"""Two-dimensional pictures of an embedding: who is drawn, how they are placed, and what holds in all dimensions.

A projection is an illustration. Distances and clusters in it are made by the method as much as by
the embedding, so nothing here is a figure of an audit; beside each picture stand numbers of the full space.
"""
