"""Typed evidence of a machine: the document, its file, and parsers of all tool outputs."""
