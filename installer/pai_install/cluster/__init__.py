"""The one door to the Kubernetes API: client, typed model, conditions of the cluster."""
