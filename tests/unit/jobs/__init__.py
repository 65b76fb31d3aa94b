"""Jobs: reading, checking and what they mean."""
