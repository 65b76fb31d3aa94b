"""The pod that puts code on a storage of a group, and what runs in it. Pure.

The pod checks the storage first, and removes old archives. The archive then comes through the input of a program, or
to a port of the pod.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pai_install.agents.common.owner_ports import WEB_PORT
from pai_install.jobs.code import FOLDER, StoredCode, stored_folder
from pai_install.jobs.compile.names import USER
from pai_install.jobs.place import JobPlace
from pai_install.scheduling.model import LOWEST
from pai_install.scheduling.unqueued import CLASS, is_limited

Object = Mapping[str, Any]

# label: the owner. Not the label of jobs, so that neither lists nor records of jobs have the pod
OWNER = "pai-install/code-upload"
PRESENT, ABSENT = "present", "absent"
# exit statuses of the program
NOT_WRITTEN, NOT_EQUAL = 3, 4
_LONGEST_S = 3600
# digests that the environment of a pod holds. With more, nothing is removed
_MOST_USED = 800
_SHORT = 24

_CHECK = r"""
busybox chmod 755 "$FOLDER" 2>/dev/null
trap 'busybox rm -f "$FOLDER/.part-$RUN"; exit 0' TERM
busybox find "$FOLDER" -maxdepth 1 -type f -name '.part-*' -mmin +1440 -exec busybox rm -f {} ';'
for old in "$FOLDER"/*.tar.gz; do
  name=${old##*/}
  case " $USED " in *" all "* | *" $(echo "$name" | busybox cut -c 1-24) "*) continue ;; esac
  [ "$name" != "$DIGEST.tar.gz" ] && [ -n "$(busybox find "$old" -maxdepth 0 -type f -mtime "+$KEEP_DAYS")" ] &&
    busybox rm -f "$old"
done
file="$FOLDER/$DIGEST.tar.gz"
if [ -f "$file" ] && [ ! -L "$file" ] && [ "$(busybox sha256sum <"$file" | busybox cut -c 1-64)" = "$DIGEST" ]; then
  busybox touch "$file" 2>/dev/null
  echo present
  exit 0
fi
echo absent
"""
_WAIT = r"""
busybox sleep "$LONGEST_S" &
wait
"""
# a file appears whole or not at all; one of another name than its content is replaced
_RECEIVE = r"""
part="$FOLDER/.part-$RUN"
trap 'busybox rm -f "$part"' EXIT
trap 'exit 3' HUP INT TERM PIPE
busybox rm -f "$part" && busybox head -c "$SIZE" >"$part" || exit 3
[ "$(busybox sha256sum <"$part" | busybox cut -c 1-64)" = "$DIGEST" ] || exit 4
busybox chmod 644 "$part" 2>/dev/null
busybox sync "$part" 2>/dev/null || busybox sync
[ ! -d "$FOLDER/$DIGEST.tar.gz" ] || busybox rm -rf "$FOLDER/$DIGEST.tar.gz"
busybox mv -f "$part" "$FOLDER/$DIGEST.tar.gz" || exit 3
"""


# the shell waits for the program, and so sees the signal that ends the pod
_LISTEN = """
(
busybox timeout "$LONGEST_S" busybox nc -l -p "$PORT" </dev/null | (@RECEIVE@)
) &
wait $!
"""


def upload_pod(
    code: StoredCode, place: JobPlace, run: str, image: str, keep_days: int, used: Collection[str], port: int = 0
) -> Object:
    """The pod, in the namespace and with the lowest priority of the group. used: digests that jobs of the group use.

    port: it reads the archive there. 0: it waits for the program of `receive_words`.
    """
    claim, owner = place.claims[code.storage], place.owner
    words = {
        "FOLDER": FOLDER,
        "DIGEST": code.digest,
        "SIZE": str(code.size),
        "RUN": run,
        "KEEP_DAYS": str(keep_days),
        "LONGEST_S": str(_LONGEST_S),
        "PORT": str(port),
        # The environment of a process has a limit in the kernel.
        "USED": " ".join(sorted(one[:_SHORT] for one in used)) if len(used) <= _MOST_USED else "all",
    }
    container = {
        "name": "code",
        "image": image,
        "command": ["/bin/sh", "-c", _CHECK + (_LISTEN.replace("@RECEIVE@", _RECEIVE) if port else _WAIT)],
        "env": [{"name": key, "value": value} for key, value in words.items()],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "2", "memory": "512Mi"}},
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "code", "mountPath": FOLDER, "subPath": stored_folder(claim.folder, owner.namespace)}
        ],
    }
    # The console opens a port of a pod by its label, and the network of the group closes it for all others.
    labels = {OWNER: owner.user, **({WEB_PORT: str(port)} if port else {})}
    limited = is_limited(place.scheduling, owner.namespace)
    plain = {} if place.scheduling.backend == "kueue" else {"priorityClassName": LOWEST}
    named = {"priorityClassName": CLASS} if limited else plain
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"code-{run}", "namespace": owner.namespace, "labels": labels},
        "spec": {
            **named,
            "restartPolicy": "Never",
            # The pod ends by itself if the command that uses it was killed.
            "activeDeadlineSeconds": 2 * _LONGEST_S,
            "terminationGracePeriodSeconds": 10,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "code", "persistentVolumeClaim": {"claimName": claim.name}}],
        },
    }


def owned(pod: Object) -> Object:
    """The pod as its owner would create it, for the policies on members."""
    labels = pod["metadata"]["labels"]
    return {**pod, "metadata": {**pod["metadata"], "labels": {**labels, USER: labels[OWNER]}}}


def receive_words(pod: Object) -> Sequence[str]:
    """The words of kubectl for the program that reads the archive."""
    metadata = pod["metadata"]
    where = ("--namespace", metadata["namespace"], metadata["name"])
    return ("exec", "--stdin", *where, "--", "/bin/sh", "-c", _RECEIVE)
