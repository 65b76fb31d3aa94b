"""pai-install: installs and operates shared GPU training clusters."""

__version__ = "0.1.0"
