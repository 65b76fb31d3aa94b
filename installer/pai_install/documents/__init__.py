"""YAML documents with positions: parsing, scalars, validation, problems."""
