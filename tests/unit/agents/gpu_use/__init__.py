"""What measures how busy GPUs are."""
