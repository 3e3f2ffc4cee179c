"""Training away from whoever asked for it: a queue in the store, and processes of their own that work it off."""
