"""The operations: one file per acting verb, each a pure function from an observation to a plan."""
