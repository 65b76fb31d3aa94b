"""HiveD."""
