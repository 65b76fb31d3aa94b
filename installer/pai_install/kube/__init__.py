"""Kubernetes objects as values: parsers and builders without I/O."""
