"""Says which machine or GPU is sick, why, and what to do: a collector and pure verdicts over its evidence."""
