"""Runs on the machines: the stand-alone collector, and sending it there."""
