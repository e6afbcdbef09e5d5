"""Speed and accuracy, measured beside MuJoCo in the same process: `python -m benchmarks`."""
