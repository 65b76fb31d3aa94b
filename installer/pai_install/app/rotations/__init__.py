"""Rotations: workflows that replace something in use, with the old valid until nothing needs it."""
