"""What a machine said, as typed values: the document, its file, parsers of every tool's output."""
