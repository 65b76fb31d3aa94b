"""The recorder of jobs, a program of the control planes."""
