"""What users may do, asked of the API server itself."""
