"""Where a job would go, before it is submitted: what it would take back, or which rule keeps it waiting."""
