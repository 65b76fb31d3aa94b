"""Metrics and alerts as values: what Prometheus scrapes, which rules it has, and whom Alertmanager tells. Pure."""
