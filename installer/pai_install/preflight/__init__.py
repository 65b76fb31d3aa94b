"""Says, before anything is touched, what about the machines would make an installation fail."""
