"""Storages and who may use them: a pure compiler from the site's sections to Kubernetes objects."""
