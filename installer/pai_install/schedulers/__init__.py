"""One package per scheduler back end: desired objects, admission policies, jobs, usage, and self-test."""
