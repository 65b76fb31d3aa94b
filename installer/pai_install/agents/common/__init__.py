"""Shared by all agents: HTTP, the Kubernetes API, foreign JSON, leases, logs."""
