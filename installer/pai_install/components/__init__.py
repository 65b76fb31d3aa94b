"""Third-party programs: what is pinned (catalogue.yml) and where it comes from (sources)."""
