"""Pure functions from a Site and an observation of its machines to a Plan. No I/O happens here."""
