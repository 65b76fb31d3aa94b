"""The doors to the operating system: processes and files."""
