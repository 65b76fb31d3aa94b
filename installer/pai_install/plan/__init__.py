"""Pure: a Site and what was observed on its machines become a Plan. No I/O happens here."""
