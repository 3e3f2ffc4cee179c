"""Errors a user can cause. Each message says what was found, what is allowed and what to do."""


class UgeError(Exception):
    """Base of every error this package raises on purpose; shown as its text, without a traceback."""


class ConfigError(UgeError):
    """A setting has a value that is not allowed, or does not fit the graph or the method."""


class GraphError(UgeError):
    """The data that came in cannot be made into an attributed graph."""


class DatasetMissing(GraphError):
    """A file or folder that a dataset needs is not there."""


class StoreError(UgeError):
    """The run store cannot be read or written."""


class RunNotFound(StoreError):
    """No stored run has the id asked for."""


class TrainingDiverged(UgeError):
    """The loss stopped being a finite number."""
