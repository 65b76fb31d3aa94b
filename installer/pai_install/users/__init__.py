"""Users of basic group management, what they may do in their groups' namespaces, and what keeps them to it. Pure."""
