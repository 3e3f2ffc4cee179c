"""Debiasing methods, a file each: which slots of the training loop they fill."""
