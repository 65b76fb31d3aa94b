"""Support bundles."""
