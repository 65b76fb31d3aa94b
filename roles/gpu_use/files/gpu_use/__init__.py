"""Measures how busy the GPUs of a machine's pods are. Python 3.9, nothing but its own library."""
