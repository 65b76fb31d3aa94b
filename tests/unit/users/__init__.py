"""Users of groups, and people of a directory."""
