"""Users of basic group management, their rights in their groups' namespaces, and policies that enforce these. Pure."""
