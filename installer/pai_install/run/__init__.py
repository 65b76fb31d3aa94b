"""Runs a plan: phases in order, hosts on their own, a journal to continue from, one run at a time."""
