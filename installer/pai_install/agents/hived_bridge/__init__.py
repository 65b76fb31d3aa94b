"""HiveD bridge: connects kube-scheduler to HiveD, evicts HiveD's victims, and keeps HiveD's last good configuration.

The reason is in docs/decisions/010-a-bridge-between-kube-scheduler-and-hived.md.
"""
