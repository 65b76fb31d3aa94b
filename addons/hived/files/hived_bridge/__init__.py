"""Stands between kube-scheduler and HiveD, evicts what HiveD wants evicted, and keeps HiveD's last good configuration.

Why it is needed: docs/decisions/010-a-bridge-between-kube-scheduler-and-hived.md. Python 3.10, no other library.
"""
