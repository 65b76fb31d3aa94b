"""The history of a machine: snapshots, accepted baselines, acknowledgements."""
