"""A job and its place -> the objects of the scheduler that is to run it. Pure."""
