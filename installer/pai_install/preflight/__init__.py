"""Preflight: finds, before any change, what would make an installation fail."""
