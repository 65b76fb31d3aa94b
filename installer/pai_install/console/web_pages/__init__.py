"""Web pages in jobs, such as notebooks, for the owner of the job: a proxy on a port of its own."""
