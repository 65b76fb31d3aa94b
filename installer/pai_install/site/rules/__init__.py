"""Rules between values and files of a site."""
