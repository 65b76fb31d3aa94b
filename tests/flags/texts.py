"""The help texts: tests/flags/text/PROGRAM.txt, and PROGRAM-VERB.txt for what a verb of it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.flags.found import UNKNOWN, Line

TEXTS = Path(__file__).with_name("text")
_BOOKWORM = "Debian 12"
_OURS = "the catalogue's"


_PROGRAMS = (
    "chown", "chronyc", "df", "dmesg", "dockerd", "dpkg", "dpkg-query", "findmnt", "free", "grep", "journalctl", "ls",
    "modinfo", "modprobe", "nft", "openssl", "paste", "python3", "rm", "sort", "swapoff", "swapon", "systemctl",
    "systemd-detect-virt", "umount", "uname",
)  # fmt: skip
_VERBS = {
    "containerd": (),
    "crictl": ("config", "images", "pods", "ps", "rmp"),
    "ctr": (
        "images import",
        "images label",
        "images list",
        "images pull",
        "images remove",
        "images tag",
        "namespaces list",
        "run",
        "tasks list",
    ),
    "etcdctl": ("endpoint status", "member list"),
    "etcdutl": ("snapshot restore",),
    "kubeadm": (
        "init",
        "init phase kubeconfig",
        "init phase kubeconfig all",
        "init phase upload-certs",
        "init phase upload-config kubeadm",
        "join",
        "reset",
        "token",
        "token create",
        "upgrade apply",
        "upgrade node",
    ),
    "kubelet": (),
    "nvidia-ctk": ("cdi generate", "cdi list", "system create-device-nodes"),
    "runc": (),
}
_KUBECTL = (
    "apply", "create", "create token", "delete", "drain", "exec", "get", "label", "logs", "patch", "replace",
    "rollout status", "rollout undo", "wait",
)  # fmt: skip


def _recorded() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Help text -> whose it is, and the commands that print it. Others in the folder are from manuals, as they say."""
    for program in _PROGRAMS:
        yield program, (_BOOKWORM, f"{program} --help")
    for program in ("haproxy", "smartctl"):
        yield program, (_BOOKWORM, f"{program} -h")
    yield "iptables", (_BOOKWORM, "iptables-legacy --help", "iptables-legacy -m comment --help")
    yield "iptables-legacy", (_BOOKWORM, "iptables-legacy --help")
    yield "lspci", (_BOOKWORM, "lspci --help")
    yield "ssh", (_BOOKWORM, "ssh")
    yield "ip", (_BOOKWORM, "ip -help")
    yield "openssl-x509", (_BOOKWORM, "openssl x509 -help")
    for verb in ("info", "ps", "run"):
        yield f"docker-{verb}", (_BOOKWORM, f"docker {verb} --help")
    for program, verbs in _VERBS.items():
        for verb in ("", *verbs):
            command = f"{program} {verb}".strip()
            yield command.replace(" ", "-"), (_OURS, f"{command} --help")
    for verb in _KUBECTL:
        yield f"kubectl-{verb.replace(' ', '-')}", (_OURS, f"kubectl {verb} --help")
    yield "kubectl", (_OURS, "kubectl --help", "kubectl options")


RECORDED = dict(_recorded())


@cache
def fixtures() -> Mapping[str, str]:
    """Program, or program and verbs joined by `-` -> its help. The first line of a file says where it is from."""
    return {path.stem: path.read_text().partition("\n")[2] for path in sorted(TEXTS.glob("*.txt"))}


def missing(line: Line) -> tuple[str, ...]:
    """The flags of a command line that no help text of its program, or of the verbs in it, has."""
    text = _text(line)
    return tuple(flag for flag in line.flags if not _has(text, flag))


def _text(line: Line) -> str:
    """What the program says of itself and of these verbs; of all its verbs, where only the run knows the verb."""
    known, program = fixtures(), line.program
    words = [word for word in line.words[1:] if not word.startswith("-") and "/" not in word]
    starts_with_verb = words and any(f"{name}-".startswith(f"{program}-{words[0]}-") for name in known)
    if not words or words[0] == UNKNOWN or (line.completed and not starts_with_verb):
        return "".join(text for name, text in known.items() if name == program or name.startswith(f"{program}-"))
    verbs = {
        "-".join((program, *words[first:last])) for first in range(len(words)) for last in range(first, len(words) + 1)
    }
    return "".join(known.get(name, "") for name in sorted(verbs))


def _has(text: str, flag: str) -> bool:
    """Whether a help names a flag: whole, as `-j[son]`, or letter by letter."""
    plain = re.sub(r"[][]", "", text)
    if any(re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", it) for it in (text, plain)):
        return True
    if len(flag) == 2 and re.search(rf"\[-\w*{flag[1]}\w*\]", text):  # a usage line, as ssh's [-46Aa...]
        return True
    letters = re.fullmatch(r"-([A-Za-z]{2,})\W?", flag)
    return letters is not None and all(_has(text, f"-{letter}") for letter in letters[1])
