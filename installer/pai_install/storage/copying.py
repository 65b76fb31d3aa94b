"""The pods that copy a storage to its next place: their input and their reports. Pure.

rsync does it, in three kinds of pods: `measure` asks whether it can be done and how much there is, `copy` copies,
`verify` reads both places to the last byte. A pod that is lost takes nothing along: the next one goes on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from pai_install.site.services.storages import StorageEntry
from pai_install.storage.model import Grant
from pai_install.storage.objects import PROBE
from pai_install.storage.place import place

Mode = Literal["measure", "copy", "verify"]

COPY = "storage-copy"
RUN = "pai-install/copy"
MODE = "pai-install/copy-mode"
OURS = f"{PROBE}={COPY}"
# a folder of a million files is counted in less; what takes longer is copied without a number before
_COUNT_S = 120
_OLD, _NEW = "/old", "/new"
_FROM, _TO = "pai-from-", "pai-to-"

# Each line that it says is KEY=VALUE, in the log for who asks while it runs, and in the container's status.
_BEGIN = r"""
say() { echo "$1=$2"; echo "$1=$2" >>"$SAY"; }
why() { busybox tail -n 4 "$SCRATCH/err" | busybox tr '\n=' ' :' | busybox head -c 600; }
fail() { say error "$(why)"; exit 1; }
# a file server that hangs is seen by work that stands still
beat() {
  while busybox sleep 5 >/dev/null; do
    busybox cat /proc/[0-9]*/stat 2>/dev/null | busybox awk '$2 == "(rsync)" { s += $14 + $15 } END { print "beat=" s }'
  done
}
beat &
beating=$!
own="$NEW/.pai-install-copy"
mark="$own/mark-$RUN"
: >"$SCRATCH/err"
say step write
trap 'kill "$beating"' EXIT
busybox mkdir -p "$own/parts" 2>"$SCRATCH/err" || fail
busybox chmod 700 "$own" 2>/dev/null
busybox touch "$mark" 2>"$SCRATCH/err" || fail
trap 'kill "$beating"; busybox rm -f "$mark" "$mark-too"; busybox rmdir "$own/parts" "$own" 2>/dev/null' EXIT
# what the new place cannot keep is left out, and key_values: else each file would be an error
keep="-aH --numeric-ids"
busybox chown 65534:65534 "$mark" 2>/dev/null && [ "$(busybox stat -c %u "$mark")" = 65534 ] ||
  { keep="$keep --no-owner --no-group"; lost="$lost owners,"; }
busybox chmod 640 "$mark" 2>/dev/null && [ "$(busybox stat -c %a "$mark")" = 640 ] ||
  { keep="$keep --no-perms"; lost="$lost modes,"; }
busybox ln "$mark" "$mark-too" 2>/dev/null || { keep="$keep --no-hard-links"; lost="$lost hard links,"; }
[ -e "$own/plain" ] && lost="$lost ACLs and extended attributes," || more="-AX"
[ -z "$lost" ] || say lost "${lost%,}"
leave="--exclude=/.pai-install-* --exclude=.pai-install-partial --exclude=/lost+found --exclude=/.snapshot"
"""
_MEASURE = r"""
[ -e "$OLD/.pai-install-copy/mark-$RUN" ] && say same yes
say step list
busybox ls -A "$NEW" >"$SCRATCH/list" 2>"$SCRATCH/err" || fail
busybox grep -v -e '^[.]pai-install-' -e '^lost+found$' "$SCRATCH/list" | busybox grep -q . || say empty yes
busybox df -Pk "$NEW" 2>"$SCRATCH/err" | busybox awk 'NR == 2 { print $(NF - 2) }' >"$SCRATCH/free"
say free_kib "$(busybox cat "$SCRATCH/free")"
say step count
busybox timeout "$COUNT_S" rsync $keep $more $leave --dry-run --stats --no-human-readable "$OLD/" "$NEW/" \
  >"$SCRATCH/out" 2>"$SCRATCH/err"
case $? in 0 | 20 | 24 | 124 | 137 | 143) ;; *) fail ;; esac
busybox awk '/^Number of (regular )?files transferred/ { print "files=" $NF }
  /^Total transferred file size/ { print "bytes=" $(NF - 1) }' "$SCRATCH/out" >"$SCRATCH/report"
busybox cat "$SCRATCH/report"
busybox cat "$SCRATCH/report" >>"$SAY"
# files with holes need less than they seem to
bytes=$(busybox sed -n s/bytes=//p "$SCRATCH/report")
free=$(busybox cat "$SCRATCH/free")
if [ "$((${bytes:-0} / 1024))" -gt "${free:-0}" ]; then
  held=$(busybox timeout "$COUNT_S" busybox du -sk "$OLD" 2>/dev/null) && say held_kib "${held%%[!0-9]*}"
fi
say step done
"""
# progress2 tells of each file: one line in two seconds is enough
_COPY = r"""
busybox rm -rf "$own/parts"
busybox mkdir -p "$own/parts" 2>"$SCRATCH/err" || fail
[ -z "$ASIDE" ] || how="$HOW --backup --backup-dir=$own/$ASIDE"
tell='/^Number of (regular )?files transferred/ { print "files=" $NF; print "files=" $NF >>said; next }
  /^Total transferred file size/ { print "bytes=" $(NF - 1); print "bytes=" $(NF - 1) >>said; next }
  /%/ { now = systime(); if (now >= due) { print "progress=" $0; fflush(); due = now + 2 } }'
copy() {
  {
    rsync $keep $more $leave ${how:-$HOW} --sparse --no-whole-file --partial-dir=.pai-install-partial \
      --temp-dir="$own/parts" --info=progress2 --stats --no-human-readable --outbuf=N "$OLD/" "$NEW/" \
      2>"$SCRATCH/err" &
    echo $! >"$SCRATCH/pid"
    wait $!
    echo $? >"$SCRATCH/code"
  } | busybox tr '\r' '\n' | busybox awk -v said="$SAY" "$tell" &
  wait $!
  code=$(busybox cat "$SCRATCH/code")
}
trap 'kill "$(busybox cat "$SCRATCH/pid")" "$beating" 2>/dev/null; wait; exit 1' TERM
say step copy
copy
if [ "$code" = 23 ] && [ -n "$more" ] && busybox grep -q 'attr\|acl' "$SCRATCH/err" &&
  ! busybox grep -v 'attr\|acl\|^rsync error' "$SCRATCH/err" | busybox grep -q .; then
  more=""
  : >"$own/plain"
  say lost "${lost:+$lost }ACLs and extended attributes"
  copy
fi
# 24: a job removed a file meanwhile
case "$code" in 0 | 24) ;; *) echo "rsync ended with $code" >>"$SCRATCH/err"; fail ;; esac
say step flush
# what stayed of a file that was copied halfway and is gone at the old place
[ "$LAST" = no ] || busybox find "$NEW" -type d -name .pai-install-partial -prune -exec busybox rm -rf {} ';'
busybox sync -f "$NEW" 2>"$SCRATCH/err" || busybox sync || fail
say step done
"""
_VERIFY = r"""
say step compare
rsync $keep $more $leave $HOW --checksum --dry-run --itemize-changes "$OLD/" "$NEW/" >"$SCRATCH/out" 2>"$SCRATCH/err"
case $? in 0 | 24) ;; *) fail ;; esac
# where jobs are at work on the new side, folders and modes that they changed are no difference of the data; elsewhere
# only the time of the topmost folder is none, in which these pods leave their marks
[ "$LATE" = yes ] && skip='^[.]' || skip='^[.]d[.][.]t[.]* [.]/$'
busybox grep -v -e "$skip" "$SCRATCH/out" >"$SCRATCH/differ"
say differ "$(busybox grep -c . "$SCRATCH/differ")"
say example "$(busybox head -n 3 "$SCRATCH/differ" | busybox tr '\n=' ' :' | busybox head -c 300)"
if [ "$LATE" = yes ]; then
  rsync $keep $leave --dry-run --itemize-changes "$OLD/" "$NEW/" 2>/dev/null | busybox grep '^>f' >"$SCRATCH/newer"
  say newer "$(busybox grep -c . "$SCRATCH/newer")"
  busybox head -n 3 "$SCRATCH/newer" | busybox cut -c 13- | busybox tr '\n=' ' :' | busybox head -c 300 >"$SCRATCH/some"
  say newer_example "$(busybox cat "$SCRATCH/some")"
fi
[ -d "$own/$KEPT" ] && say kept "$(busybox find "$own/$KEPT" -type f | busybox grep -c .)"
say step done
"""
_SCRIPTS: Mapping[Mode, str] = {"measure": _MEASURE, "copy": _COPY, "verify": _VERIFY}
_PROGRESS = re.compile(r"\s*([\d,]+)\s+\d+%.*?(?:xfr#(\d+))?[^#]*$")


@dataclass(frozen=True, slots=True)
class CopyRoute:
    """A copy between two places, which have temporary PVs and PVCs in one namespace.

    last: no pod uses the old place any longer. beside: pods already use the new place, so newer files there stay.
    filled: the new place was not empty before.
    """

    old: Grant
    new: Grant
    last: bool = False
    beside: bool = False
    filled: bool = False

    @property
    def aside(self) -> str:
        """Returns the folder for replaced files, below .pai-install-copy of the new place, or "" if it has only our
        files.
        """
        return f"replaced-g{self.new.generation}" if self.last or self.filled else ""

    @property
    def rsync_options(self) -> tuple[str, ...]:
        """Options of rsync beside those for metadata."""
        if self.last and self.beside:
            return ("--update", "--omit-dir-times")
        return ("--delete",) if self.last and not self.filled else ()

    @property
    def run_label(self) -> str:
        """The label of its objects, which no other rotation has."""
        return f"{self.new.storage.name}.{self.new.generation}"


def copy_route(old: Grant, new: StorageEntry, generation: int) -> CopyRoute:
    """Grants that stand in for both places. The old one is mounted so that nothing can be written."""
    source = old.storage.model_copy(update={"read_only": True})
    target = new.model_copy(update={"read_only": False, "access_mode": "ReadWriteMany"})
    there = Grant(target, old.group, old.namespace, generation, prefix=_TO)
    return CopyRoute(replace(old, storage=source, claim_name="", adopted="", claimed=True, prefix=_FROM), there)


def copy_conflict(old: StorageEntry, new: StorageEntry) -> tuple[str, str] | None:
    """Returns why a copy between two places is impossible, and the remedy, or None."""
    here, there = place(old), place(new)
    if here == there:
        return f"the place stays {here}: there is nothing to copy", "the same command without --copy"
    if old.type == "local" and old.machine != new.machine:
        remedy = f"copy {here} to {there} with rsync over ssh, and rotate without --copy"
        return "a local storage is on one machine, and no pod mounts folders of two", remedy
    if old.server == new.server and old.path and new.path and _within(old.path, new.path):
        return f"{here} and {there} lie within each other", "take a folder of its own"
    return None


def _within(one: str, other: str) -> bool:
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


def each_machine(storage: StorageEntry) -> bool:
    """Whether every machine has its own folder, as far as the site says."""
    return storage.type == "hostPath"


def labels_of(route: CopyRoute, mode: Mode | None = None) -> dict[str, str]:
    """Returns labels of the temporary objects and of the pods of a mode. The last copy has its own labels."""
    pods = {MODE: f"{mode}-last" if route.last else str(mode)} if mode is not None else {}
    return {PROBE: COPY, RUN: route.run_label, **pods}


def copy_pod(route: CopyRoute, mode: Mode, node: str, run: str, image: str) -> dict[str, Any]:
    """One pod. The scheduler has no say in it: a worker that is full of jobs copies, too."""
    words = {
        "OLD": _OLD,
        "NEW": _NEW,
        "RUN": run,
        "HOW": " ".join(route.rsync_options),
        "ASIDE": route.aside,
        "KEPT": f"replaced-g{route.new.generation}",
        "LAST": "yes" if route.last else "no",
        "LATE": "yes" if route.last and route.beside else "no",
        "COUNT_S": str(_COUNT_S),
        "SCRATCH": "/dev/shm",  # noqa: S108 - the container's own
        "SAY": "/dev/termination-log",
    }
    container = {
        "name": "copy",
        "image": image,
        "command": ["/bin/sh", "-c", f"{_BEGIN}{_SCRIPTS[mode]}"],
        "env": [{"name": key, "value": value} for key, value in words.items()],
        "resources": {"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "4", "memory": "8Gi"}},
        "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False},
        "volumeMounts": [
            {"name": "old", "mountPath": _OLD, "readOnly": True},
            {"name": "new", "mountPath": _NEW},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pai-copy-{run}",
            "namespace": route.old.namespace,
            "labels": labels_of(route, mode),
        },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 20,
            # The pod reads foreign data, and needs no access to the API.
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "volumes": [
                {"name": "old", "persistentVolumeClaim": {"claimName": route.old.claim, "readOnly": True}},
                {"name": "new", "persistentVolumeClaim": {"claimName": route.new.claim}},
            ],
        },
    }


@dataclass(frozen=True, slots=True)
class Measured:
    """The work of a copy. files, size: None if counting timed out. free: None if unknown.

    held: disk usage of the old place, if measured. empty: the new place is empty.
    """

    same: bool
    empty: bool
    files: int | None
    size: int | None
    free: int | None
    held: int | None
    lost: str

    @classmethod
    def read(cls, report: Mapping[str, str]) -> Measured:
        """Parses the report of a pod in the mode `measure`. Sizes are in bytes."""
        free, held = number(report, "free_kib"), number(report, "held_kib")
        return cls(
            same="same" in report,
            empty="empty" in report,
            files=number(report, "files"),
            size=number(report, "bytes"),
            free=None if free is None else free * 1024,
            held=None if held is None else held * 1024,
            lost=report.get("lost", "").strip(),
        )

    @property
    def lacks_room(self) -> bool:
        """Whether it is sure that the new place has too little."""
        if self.size is None or self.free is None or self.size <= self.free:
            return False
        return self.held is None or self.held > self.free


def number(report: Mapping[str, str], key: str) -> int | None:
    """Returns a number of the report, or None."""
    word = report.get(key, "").replace(",", "").strip()
    return int(word) if word.isdecimal() else None


def progress(line: str) -> tuple[int, int | None] | None:
    """Returns copied bytes and files from a progress line of rsync, or None for other lines."""
    found = _PROGRESS.match(line)
    if found is None:
        return None
    return int(found[1].replace(",", "")), int(found[2]) if found[2] else None


@dataclass(frozen=True, slots=True)
class CopyPodStatus:
    """A pod of a copy. phase: of the API. started: both places are mounted. why: why it does not start or has ended.

    report: its current report, from the log while it runs.
    """

    phase: str
    started: bool
    why: str
    report: Mapping[str, str]


def copy_pod_status(pod: Mapping[str, Any], log: str = "") -> CopyPodStatus:
    """From the API's object and the end of its log."""
    status = pod.get("status") or {}
    states = [row.get("state") or {} for row in status.get("containerStatuses") or ()]
    ended: Mapping[str, Any] = next((state["terminated"] for state in states if "terminated" in state), {})
    waiting: Mapping[str, Any] = next((state["waiting"] for state in states if "waiting" in state), {})
    why = " ".join(str(row[key]) for row in (waiting, ended, status) for key in ("reason", "message") if row.get(key))
    last = str(ended.get("message") or "")
    started = any("running" in state or "terminated" in state for state in states)
    return CopyPodStatus(str(status.get("phase") or ""), started, why[:300], key_values(f"{log}\n{last}"))


def key_values(text: str) -> dict[str, str]:
    """Parses KEY=VALUE lines. The last value of a key wins."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, _, value in pairs}
