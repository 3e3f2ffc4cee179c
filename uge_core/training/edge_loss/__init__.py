"""The loss over edges and negatives, compiled and plain."""
