"""The self-test of a scheduler: small jobs of its own, and what was seen of them against its promises. Pure."""
