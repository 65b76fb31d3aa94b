"""What happened, told: live on a terminal, and as JSON, Markdown and HTML."""
