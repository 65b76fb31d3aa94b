"""SSH keys of the lab: the pair that opens the machines, and the machines' own keys for known_hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pai_install.lab.spec import LabMachine, LabSpec
from pai_install.system.files import write_atomic
from pai_install.system.proc import run


def ensure_key_pair(key_file: Path) -> bool:
    """Creates an ed25519 key pair (0600) if it is missing. Returns False if it existed."""
    if key_file.exists():
        return False
    key_file.parent.mkdir(parents=True, exist_ok=True)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "pai-install lab", "-f", key_file])
    return True


def public_key(key_file: Path) -> str:
    """One line for authorized_keys. Raises PaiError when the private key cannot be read."""
    return run(["ssh-keygen", "-y", "-f", key_file]).stdout.strip() + "\n"


def ensure_host_key(folder: Path, name: str) -> str:
    """The public half (type and base64) of a machine's host key in `folder`, made when missing."""
    key = folder / "ssh_host_ed25519_key"
    if not key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"root@{name}", "-f", key])
    return " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])


def known_hosts_text(existing: str, keys: Mapping[LabMachine, str], names: Iterable[str] = ()) -> str:
    """Returns `existing` with the machines' keys. Lines of other hosts stay.

    names: further addresses to remove.
    """
    hosts = {str(machine.address) for machine in keys} | set(names)
    kept = [line for line in existing.splitlines() if not _hosts(line) & hosts]
    for machine, key in keys.items():
        address = machine.address
        # ssh looks a host up as "address" on port 22 and as "[address]:port" elsewhere
        kept.append(f"{address},[{address}]:{machine.port},{machine.name} {key}")
    return "".join(f"{line}\n" for line in kept)


def _hosts(line: str) -> set[str]:
    fields = line.split()
    return set(fields[0].split(",")) if fields and not line.startswith("#") else set()


def write_known_hosts(spec: LabSpec, keys: Mapping[LabMachine, str]) -> bool:
    """Writes the machines' keys to the site's known_hosts. Returns False if they were up to date."""
    path = spec.known_hosts
    before = path.read_text() if path.exists() else ""
    after = known_hosts_text(before, keys)
    if sorted(before.splitlines()) == sorted(after.splitlines()):
        return False
    write_atomic(path, after)
    return True


def ssh_command(spec: LabSpec, machine: LabMachine, command: Iterable[str] = ()) -> list[str]:
    """The ssh command line that opens a machine, host key checking on."""
    words = list(command)
    return [
        "ssh",
        "-i",
        str(spec.key_file),
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        f"UserKnownHostsFile={spec.known_hosts}",
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        "LogLevel=ERROR",
        "-p",
        str(machine.port),
        f"{spec.user}@{machine.address}",
        *(["--", *words] if words else []),
    ]
