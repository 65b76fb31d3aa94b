"""Plays the scenarios of the scheduler's self-test in a cluster, and takes everything away again."""
