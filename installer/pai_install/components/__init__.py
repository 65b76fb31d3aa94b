"""Third-party programs: pinned versions (catalogue.yml) and their sources."""
