"""Which controls of the CIS Kubernetes Benchmark a cluster meets, as data, and what it takes to see it on machines."""
