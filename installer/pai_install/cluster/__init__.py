"""The one door to the Kubernetes API: client and transports."""
