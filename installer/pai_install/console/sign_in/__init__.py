"""Sign-in of people and programs: passwords, tokens, sessions, and identity providers."""
