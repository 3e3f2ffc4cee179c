"""Layouts of files, one a file: each says whether a folder is of its kind and reads it."""
