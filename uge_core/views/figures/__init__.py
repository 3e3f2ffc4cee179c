"""Figures of what the pages show, one file a kind. A method has one colour and one symbol everywhere."""
