"""A run from a wish to a stored audit: plan, train, audit, keep, verify."""
