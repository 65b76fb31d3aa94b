"""Isolation of groups: publishes the addresses of pods by namespace, and keeps the packet filter of each node."""
