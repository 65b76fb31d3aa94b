"""The support bundle: what helps somebody else to find a fault, in one file, without secrets."""
