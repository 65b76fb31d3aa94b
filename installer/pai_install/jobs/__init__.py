"""Jobs of users: what their files ask for, as values, and what that becomes in a cluster."""
