"""Limits of users' pods: `job submit` refuses violations before the API server does."""

from __future__ import annotations

# volumes that hold nothing of the machine, of a server or of another namespace
VOLUMES = (
    "emptyDir",
    "persistentVolumeClaim",
    "configMap",
    "secret",
    "downwardAPI",
    "projected",
    "ephemeral",
)
# those of Pod Security's profile baseline, and what RDMA needs
CAPABILITIES = (
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "IPC_LOCK",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
)
# seconds from the deletion of a pod to its end
MAX_GRACE_S = 120
# bytes of the commands and environments of a pod, and of labels and annotations of an object
MAX_COMMAND, MAX_NOTES = 64 * 1024, 32 * 1024
# bytes of a pod, and of all pods of a job, as text
MAX_POD, MAX_JOB = 128 * 1024, 512 * 1024
# names of clients that the API server keeps for an object
MAX_MANAGERS = 32
# pods of a group, and so of a job: controllers make lists of as many
MAX_PODS = 10_000
