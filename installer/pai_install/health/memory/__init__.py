"""What is remembered of a machine between runs: snapshots, accepted baselines, acknowledgements."""
