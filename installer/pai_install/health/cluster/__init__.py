"""Health of the cluster: nodes, system pods, identities of machines, deprecated APIs."""
