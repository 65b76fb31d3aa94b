"""The one door to the Kubernetes API: client, model of what it answers, conditions of the cluster."""
