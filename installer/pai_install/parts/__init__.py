"""All installable parts: one file per part contains all its facts, and everything else is derived from the parts."""
