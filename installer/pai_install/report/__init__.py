"""Reports of a run: live on a terminal, and as JSON, Markdown and HTML."""
