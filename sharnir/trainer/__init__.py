"""Training simulators: the loop with deadlines, sessions of an operator, failures, exercises, streams."""
