"""What jobs use of the virtual clusters now: a pure reader of the scheduler's objects, one module per back end."""
