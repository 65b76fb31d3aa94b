"""The pod that tests a storage on one worker: its object, its script, and the parser of its output."""

from __future__ import annotations

from typing import Any, NamedTuple

PROBE = "pai-install/probe"
RUN = "pai-install/run"
OURS = f"{PROBE}=storage"
MOUNT = "/mnt/storage"
# both copies lie in the pod's /dev/shm, which has room for 64 MiB
MAX_MIB = 24
OTHER_UID = 65534

# Each line that it says is KEY=VALUE, in the log for who asks while it runs, and in the status of the container, which
# comes with the list of all pods. The folders of runs that were interrupted more than an hour ago go first.
WRITER = r"""
say() { echo "$1=$2"; echo "$1=$2" >>"$SAY"; }
why() { busybox grep -v ' records ' "$SCRATCH/err" | busybox tr '\n' ' ' | busybox head -c 600; }
fail() { say error "$(why)"; exit 1; }
try() { say step "$1"; shift; "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" || fail; }
now() { read -r up rest </proc/uptime; echo "${up%.*}${up#*.}"; }
copy() { busybox dd if="$1" of="$2" bs=1M $3 2>"$SCRATCH/err"; }
folder="$MOUNT/.pai-install-test-$NAME"
try stat busybox stat -c '%a %u:%g' "$MOUNT"
read -r mode owner <"$SCRATCH/out"
say mode "$mode"
say owner "$owner"
say step list
busybox ls -A "$MOUNT" >/dev/null 2>"$SCRATCH/err" || fail
if [ "$READ_ONLY" = yes ]; then
  say step refuse
  if busybox mkdir "$folder" 2>"$SCRATCH/err"; then
    busybox rmdir "$folder"
    say wrote yes
  fi
  say step done
  exit 0
fi
busybox find "$MOUNT" -maxdepth 1 -type d -name '.pai-install-test-*' -mmin +60 -exec busybox rm -rf {} ';' 2>/dev/null
try create busybox mkdir "$folder"
trap 'busybox rm -rf "$folder"' EXIT
trap 'exit 1' TERM
try prepare copy /dev/urandom "$SCRATCH/data" "count=$MIB"
began=$(now)
try write copy "$SCRATCH/data" "$folder/data" conv=fsync
say mib "$MIB"
say write_cs $(($(now) - began))
say step read
began=$(now)
if copy "$folder/data" "$SCRATCH/back" iflag=direct; then
  say from server
else
  began=$(now)
  try read copy "$folder/data" "$SCRATCH/back" ""
  say from memory
fi
say read_cs $(($(now) - began))
say step compare
busybox cmp "$SCRATCH/data" "$SCRATCH/back" >"$SCRATCH/err" 2>&1 || fail
try remove busybox rm -rf "$folder"
say step done
"""
# the same as another user, as jobs may be
OTHER = r"""
file="$MOUNT/.pai-install-test-$NAME-other"
others=no
busybox touch "$file" 2>/dev/null && busybox rm -f "$file" && others=yes
echo "others=$others" >"$SAY"
"""


class Grant(NamedTuple):
    """A storage in a group's namespace. machine: the only machine with it. Empty: all machines mount it."""

    storage: str
    namespace: str
    claim: str
    read_only: bool = False
    machine: str = ""


class Trial(NamedTuple):
    """One grant on one worker. name: that of its pod."""

    grant: Grant
    worker: str
    name: str


class How(NamedTuple):
    """run: marks all pods of this run. mib: MiB to write. timeout_s: seconds from the pod's start to its end."""

    run: str
    image: str
    mib: int
    timeout_s: int


def trials(grants: list[Grant], workers: list[str], run: str) -> list[Trial]:
    """Returns a trial of each grant on each possible worker. Pods have numbered names, because node names may be too
    long.
    """
    pairs = [(grant, worker) for grant in grants for worker in workers if grant.machine in ("", worker)]
    return [Trial(grant, worker, f"storage-test-{run}-{number}") for number, (grant, worker) in enumerate(pairs)]


def pod(trial: Trial, how: How) -> dict[str, Any]:
    """Returns the pod of a trial. It bypasses the scheduler and ends automatically at its deadline."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": trial.name,
            "namespace": trial.grant.namespace,
            "labels": {PROBE: "storage", RUN: how.run},
        },
        "spec": {
            # kube-scheduler would refuse a cordoned or full worker, and a queue would let the pod wait.
            "nodeName": trial.worker,
            "restartPolicy": "Never",
            # The kubelet ends the pod also if the command was killed on the controller host.
            "activeDeadlineSeconds": how.timeout_s,
            "terminationGracePeriodSeconds": 5,
            # The pod runs in the namespace of a group and needs no access to the API.
            "automountServiceAccountToken": False,
            # A namespace with many Services gives each container thousands of variables, up to the limit of the kernel.
            "enableServiceLinks": False,
            # Jobs with a toleration may run on workers with taints, so the storage is tried there, too.
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                container("writer", WRITER, trial, how, 0),
                *([] if trial.grant.read_only else [container("other", OTHER, trial, how, OTHER_UID)]),
            ],
            "volumes": [{"name": "storage", "persistentVolumeClaim": {"claimName": trial.grant.claim}}],
        },
    }


def container(name: str, script: str, trial: Trial, how: How, user: int) -> dict[str, Any]:
    """One of its containers. It asks for nothing, so that a worker that is full of jobs takes it, too."""
    words = {
        "MOUNT": MOUNT,
        "NAME": trial.name,
        "MIB": str(how.mib),
        "READ_ONLY": "yes" if trial.grant.read_only else "no",
        "SCRATCH": "/dev/shm",  # noqa: S108 - the container's own
        "SAY": "/dev/termination-log",
    }
    return {
        "name": name,
        "image": how.image,
        "command": ["/bin/busybox", "sh", "-c", script],
        "env": [{"name": key, "value": value} for key, value in words.items()],
        "resources": {
            "requests": {"cpu": "0", "memory": "0"},
            "limits": {"cpu": "1", "memory": f"{64 + 2 * how.mib}Mi"},
        },
        # Policies of groups refuse a pod that could gain privileges.
        "securityContext": {"runAsUser": user, "allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": "storage", "mountPath": MOUNT}],
    }


def key_values(text: str) -> dict[str, str]:
    """Parses KEY=VALUE lines. The last value of a key wins."""
    pairs = [line.partition("=") for line in text.splitlines() if "=" in line]
    return {key.strip(): value.strip() for key, _, value in pairs}
