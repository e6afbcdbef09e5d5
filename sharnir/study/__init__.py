"""Many runs of one scene: `run_study` (run) varies its parameters, `fit` (fitting) finds those that a recording shows.

Modules that a worker process imports (worker, executors, job, words) take simulations in only when there is one to run.
"""
