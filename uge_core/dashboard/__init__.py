"""The only names pages may import, and the processes that work for pages."""
