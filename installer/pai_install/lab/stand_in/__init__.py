"""Programs and texts that take the place of GPUs on the lab's machines."""
