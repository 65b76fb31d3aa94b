"""The projection of a site that the cluster may know: no secret, no machine login."""
