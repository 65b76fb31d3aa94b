"""What a health run changes or starts in the cluster: cordons, test pods, bandwidth jobs."""
