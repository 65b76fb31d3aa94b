"""Job recorder: keeps job history, enforces usage limits, and releases pods of lost nodes."""
