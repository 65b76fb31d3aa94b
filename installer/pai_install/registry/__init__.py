"""Registries of a site: the cache in the cluster, upstreams, mirrors, credentials, and the identity of the cache."""
