"""The two errors a user's mistake can raise; both say which object, which value, and what is allowed."""


class SceneError(ValueError):
    """A scene cannot be built as described: a wrong value, an unknown name, a mechanism that cannot be assembled."""


class SimulationError(RuntimeError):
    """A running simulation was asked for something impossible, or its state would have become non-finite."""
