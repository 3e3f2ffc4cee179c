"""Backbones, a file each: how parameters become embeddings."""
