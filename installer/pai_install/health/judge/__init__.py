"""Evidence, memory and the site's expectation in, findings out; pure but for reading the tables that come with it."""
