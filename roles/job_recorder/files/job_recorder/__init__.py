"""Keeps what became of jobs, for the time after their pods are gone. Python 3.9, nothing but its own library."""
