"""GPU meter: reports the GPU utilization of each pod as a condition of the pod."""
