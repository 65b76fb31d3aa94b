"""Evidence, history, and the site's expectation in, findings out. Pure except for reading packaged tables."""
