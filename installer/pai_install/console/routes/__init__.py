"""Routes of OpenPAI's REST API, by subject."""
