"""The support bundle: what helps others to find a fault, in one file, without secrets."""
