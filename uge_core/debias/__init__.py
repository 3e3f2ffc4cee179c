"""What a method changes in training: R and R~, cells, penalties, heads, post-processing; a file a method."""
