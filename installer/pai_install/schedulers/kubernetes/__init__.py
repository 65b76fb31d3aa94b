"""Kubernetes' own scheduler, with JobSet and resource quotas."""
