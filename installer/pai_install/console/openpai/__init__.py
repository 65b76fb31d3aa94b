"""Values of pai-install as OpenPAI's API writes them. Pure."""
