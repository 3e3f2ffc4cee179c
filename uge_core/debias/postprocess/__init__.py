"""What is done to a finished embedding, one file each."""
