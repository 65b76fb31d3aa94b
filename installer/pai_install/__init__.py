"""pai-install: installs and operates shared GPU training clusters."""

__version__ = "1.0.0"
