"""What a method adds to the loss: a penalty on the embeddings of one member."""
