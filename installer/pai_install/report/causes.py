"""Known causes of failed steps: patterns in messages, the likely cause, the remedy. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cause:
    """id: kebab-case name of the cause. cause and remedy: one sentence each."""

    id: str
    cause: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Known:
    id: str
    words: str
    cause: str
    remedy: str
    only_unreachable: bool = False


# In order: the first that matches wins, so the specific ones come first.
_TABLE = (
    _Known(
        "ssh-missing",
        r"No such file or directory: b?'ssh'",
        "The controller host has no SSH client.",
        "Run `apt-get install openssh-client` on the controller host.",
    ),
    _Known(
        "host-key-changed",
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed",
        "The SSH host key of the machine has changed: it was reinstalled, or another machine answers at its address.",
        "If the machine was reinstalled, remove its line from the site's known_hosts and run again with --accept-new.",
    ),
    _Known(
        "host-key-unknown",
        r"Host key verification failed|No .* host key is known for|host key is not cached"
        r"|add this host's fingerprint to your known_hosts",
        "The machine's SSH host key has never been recorded for this site.",
        "Run again with --accept-new to record it, or add it to the site's known_hosts.",
    ),
    _Known(
        "ssh-refused",
        r"Connection refused",
        "Nothing accepts SSH connections at the machine's address and port.",
        "Start sshd there, or correct hostip and the ssh port in layout.yaml.",
        only_unreachable=True,
    ),
    _Known(
        "ssh-login",
        r"Permission denied \(|Invalid/incorrect (username/)?password|Authentication failed"
        r"|Too many authentication failures",
        "The machine rejects the user, key, or password of the site.",
        "Try `ssh USER@MACHINE` with the same key. Then correct username, password, or key-file in the site.",
        only_unreachable=True,
    ),
    _Known(
        "ssh-name",
        r"Could not resolve hostname|Name or service not known.*ssh",
        "The controller host cannot resolve the name of the machine.",
        "Set hostip in layout.yaml to an IPv4 address.",
        only_unreachable=True,
    ),
    _Known(
        "machine-silent",
        r"timed out|No route to host|Network is unreachable|Connection closed|Broken pipe|Connection reset"
        r"|lost connection|Failed to connect",
        "The machine is unreachable: it is off, is rebooting, or has no network.",
        "Restore the machine and repeat the command, or mark it `absent: true` in layout.yaml until then.",
        only_unreachable=True,
    ),
    _Known(
        "task-timeout",
        r"Timed out after \d+ second",
        "The machine accepts connections, but commands hang. A common cause is a disk, a mount, or a driver.",
        "Look for processes in state D (`ps axo pid,stat,wchan,comm`) and read `dmesg` on the machine. Reboot it "
        "if needed.",
    ),
    _Known(
        "sudo-password",
        r"Incorrect sudo password|Sorry, try again|incorrect password attempt|Missing sudo password"
        r"|a password is required|is not in the sudoers file|sudo: .*may not run",
        "The login user cannot become root with the credentials in the site.",
        "Correct the become password in the site, or allow the user in sudoers.",
    ),
    _Known(
        "sudo-timeout",
        r"Timeout .*waiting for privilege escalation prompt",
        "The login works, but sudo does not end: the machine hangs, or sudo waits for a password.",
        "Run `sudo true` on the machine. If it hangs, check disks, mounts, and the name service. If it asks for a "
        "password, set the become password in the site or allow the user in sudoers.",
    ),
    _Known(
        "python-missing",
        r"/python[0-9.]*: (not found|No such file|Permission denied)|No python interpreters found"
        r"|python[0-9.]*: command not found"
        r"|ansible-core requires a minimum of Python|Failed to locate python|unsupported Python",
        "The machine has no Python 3.9 or newer.",
        "Install python3 (3.9 or newer) on the machine.",
    ),
    _Known(
        "package-lock",
        r"Could not get lock /var/lib/(dpkg|apt)|Unable to acquire the dpkg frontend lock|is another process using it"
        r"|Unable to lock (the administration )?directory|Failed to lock apt|Waiting for process with pid .* to finish"
        r"|Failed to update apt cache.*lock",
        "Another program (often unattended-upgrades) holds the machine's package database.",
        "Wait for the end of that program, or stop it, and repeat the command.",
    ),
    _Known(
        "package-broken",
        r"dpkg was interrupted|you must manually run 'dpkg --configure|Unmet dependencies|unmet dependencies"
        r"|held broken packages",
        "An earlier action left the package database of the machine broken.",
        "Run `dpkg --configure -a && apt-get -f install` on the machine, then repeat the command.",
    ),
    _Known(
        "package-unknown",
        r"No package matching|Unable to locate package|has no installation candidate|No match for argument",
        "The machine's package sources do not have this package.",
        "Check the release of the distribution, and its package sources.",
    ),
    _Known(
        "no-space",
        r"No space left on device|not enough free space|Disk quota exceeded|ENOSPC|You don't have enough free space",
        "A file system of the machine is full (or has no inodes left).",
        "Free space on the machine (`df -h`, `df -i`), or set data-root to a larger disk in the site.",
    ),
    _Known(
        "read-only",
        r"Read-only file system",
        "A file system of the machine is mounted read-only, often after disk errors.",
        "Read `dmesg` on the machine, and repair or replace the disk.",
    ),
    _Known(
        "clock-off",
        r"certificate (has expired or )?is not yet valid|not yet valid: current time|is not valid yet"
        r"|Release file .* is not valid yet|clock (is )?skew|x509: certificate has expired or is not yet valid",
        "The clocks of the machines disagree, or a certificate has expired.",
        "Compare `date -u` on the machines. Run the phase `time`, or correct the time servers in the site.",
    ),
    _Known(
        "port-taken",
        r"address already in use|bind: address already|Port-\d+.*is in use|port \d+ (is )?(already )?(in use|taken)",
        "Another program on the machine uses a port of the cluster.",
        "Find the program with `ss -ltnp` on the machine. Stop it or change its port.",
    ),
    _Known(
        "registry-limit",
        r"toomanyrequests|pull rate limit|429 Too Many Requests",
        "The registry limits how many images may be pulled.",
        "Set registry credentials in the site, or use a mirror or the Docker cache.",
    ),
    _Known(
        "proxy",
        r"proxyconnect|Proxy Authentication Required|407 Proxy|Tunnel connection failed|Cannot connect to proxy",
        "The proxy refuses the connection or cannot be reached.",
        "Correct the proxy settings in the site, and list the machines' networks in no-proxy.",
    ),
    _Known(
        "another-registry",
        r"unexpected commit digest",
        "The component store returned another image than the plan names. The image does not run.",
        "Check which machine has the address of the first control plane (`ip neigh`, `nft list ruleset`). If it is the "
        "store, fill it again with apply --phase components.",
    ),
    _Known(
        "image-pull",
        r"ImagePullBackOff|ErrImagePull|failed to pull( and unpack)? image|pull access denied|manifest unknown"
        r"|manifest for .* not found|http: server gave HTTP response to HTTPS client",
        "An image could not be pulled.",
        "Check that the machine reaches the registry, and that the image exists. Read `journalctl -u containerd`.",
    ),
    _Known(
        "checksum",
        r"checksum (mismatch|did not match|verification failed)|sha256 (mismatch|does not match)"
        r"|The checksum for .* did not match",
        "The checksum of a downloaded file is not the one in the catalogue.",
        "Fetch the file again with `components fetch`. If the checksum is wrong again, check for a proxy or mirror "
        "that changes files.",
    ),
    _Known(
        "swap-on",
        r"running with swap on is not supported|\[ERROR Swap\]",
        "Swap is on, and the kubelet refuses to start with it.",
        "Run the phase `base`, or run `swapoff -a` on the machine and disable swap at boot.",
    ),
    _Known(
        "kubelet",
        r"kubelet is not (running|healthy)|The kubelet is not running|failed to run Kubelet"
        r"|kubelet.*healthz.*(connection refused|deadline)|timed out waiting for the condition.*kubelet"
        r"|wait-control-plane",
        "The kubelet or a container of the control plane did not start.",
        "Read `journalctl -u kubelet -n 50` and `ctr -n k8s.io containers ls` on the machine.",
    ),
    _Known(
        "join-token",
        r"token (id )?.* (is invalid|has expired)|could not find a JWS signature|cluster-info.*Unauthorized"
        r"|bootstrap token .*expired",
        "The join token has expired or is not valid.",
        "Repeat the command. Every run creates a new token.",
    ),
    _Known(
        "etcd",
        r"etcdserver: (request timed out|leader changed|no leader)|etcd cluster is (not healthy|unavailable)"
        r"|mvcc: database space exceeded",
        "The etcd cluster has no quorum, is too slow or is full.",
        "Check disks and load of the control-plane nodes. More than half of them must run.",
    ),
    _Known(
        "api-unreachable",
        r"connection to the server .* was refused|dial tcp .*:6443: (connect: connection refused|i/o timeout)"
        r"|Unable to connect to the server",
        "The Kubernetes API is unreachable.",
        "Check kube-apiserver on the control-plane nodes: `ctr -n k8s.io tasks ls`, `journalctl -u kubelet`.",
    ),
    _Known(
        "kernel-module",
        r"modprobe: FATAL: Module .* not found|could not insert '.*'|Module \S+ not found in directory",
        "The running kernel lacks a module that the cluster needs.",
        "Install the package with extra modules of the kernel, or reboot after an update of the kernel.",
    ),
    _Known(
        "name-resolution",
        r"Temporary failure in name resolution|Temporary failure resolving|Could not resolve host"
        r"|no such host|Name or service not known",
        "The machine cannot resolve names.",
        "Check /etc/resolv.conf on the machine. A resolver on 127.0.0.x must run.",
    ),
    _Known(
        "certificate-untrusted",
        r"certificate signed by unknown authority|CERTIFICATE_VERIFY_FAILED|self[- ]signed certificate",
        "The machine does not trust the certificate of a server.",
        "Install the certificate of the authority, often of a company proxy, on the machine.",
    ),
    _Known(
        "service-start",
        r"Unable to (start|restart|enable) service|Job for .*\.service failed"
        r"|control process exited with error code",
        "A service did not start.",
        "Read `journalctl -u SERVICE -n 50` on the machine.",
    ),
    _Known(
        "memory",
        r"Cannot allocate memory|Out of memory|oom-kill|Killed process",
        "The machine ran out of memory.",
        "Free memory on the machine, or add memory.",
    ),
    _Known(
        "ended",
        r"(?m)^(Killed|Terminated)$",
        "The program of the step was killed: the machine was shutting down, or ran out of memory.",
        "Read `journalctl -n 50` and `journalctl -k -n 50` on the machine, then repeat the command.",
    ),
    _Known(
        "network-timeout",
        r"Connection timed out|i/o timeout|TLS handshake timeout|Network is unreachable|No route to host"
        r"|Request failed: <urlopen error",
        "The machine could not reach a server over the network in time.",
        "Check the route, firewall and proxy settings of the machine.",
    ),
)

_COMPILED = tuple((known, re.compile(known.words, re.IGNORECASE)) for known in _TABLE)

_SILENT = Cause(
    "machine-silent",
    "The machine could not be reached over SSH.",
    "Connect to the machine with `ssh`, resolve the error, and repeat the command.",
)


def cause_of(text: str, *, unreachable: bool = False) -> Cause | None:
    """Returns the likely cause of a failure with message and output `text`, or None if it is unknown.

    unreachable: the connection failed, not a step on the machine.
    """
    for known, pattern in _COMPILED:
        if (unreachable or not known.only_unreachable) and pattern.search(text):
            return Cause(known.id, known.cause, known.remedy)
    return _SILENT if unreachable else None


def known_causes() -> tuple[Cause, ...]:
    """Every cause in the table, for the documentation."""
    return tuple(Cause(known.id, known.cause, known.remedy) for known in _TABLE)
