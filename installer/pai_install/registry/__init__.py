"""Registries of a site: the cache in the cluster, upstreams, mirrors, logins, and what the cache is known by."""
