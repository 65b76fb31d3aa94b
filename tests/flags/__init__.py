"""Flags that we give to foreign programs, held against the help texts of the oldest versions that we meet."""
