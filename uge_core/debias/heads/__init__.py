"""What stands between the encoder and the loss, one file each."""
