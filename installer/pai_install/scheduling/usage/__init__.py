"""The current usage of the virtual clusters by jobs: a pure reader of the scheduler's objects, one module
per back end.
"""
