"""Changes and tests that a health run makes in the cluster: cordons, test pods, bandwidth jobs."""
