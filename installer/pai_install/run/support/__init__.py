"""The support bundle: data for troubleshooting by others, in one file, without secrets."""
