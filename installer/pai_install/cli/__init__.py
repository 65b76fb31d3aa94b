"""One thin file per verb; only `main` exits."""
