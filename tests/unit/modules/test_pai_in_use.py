"""What an installation could disturb is seen before anything is changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ansible_path import module_util

ID = "4f" * 32
CHAINS = """table ip filter {
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t}
\tchain INPUT {
\t\ttype filter hook input priority filter; policy drop;
\t}
}
table ip6 filter {
\tchain FORWARD {
\t\ttype filter hook forward priority filter; policy drop;
\t}
}
table inet company {
\tchain passing {
\t\ttype filter hook forward priority filter; policy drop;
\t}
}
table ip pai_install {
\tchain forward {
\t\ttype filter hook forward priority filter - 10; policy accept;
\t}
}
"""


@pytest.fixture(scope="module")
def in_use() -> Any:
    """module_utils/pai_in_use.py."""
    return module_util("pai_in_use")


def process(folder: Path, number: int, cgroup: str, *targets: str) -> None:
    """A process as /proc shows it, with files open."""
    (folder / str(number) / "fd").mkdir(parents=True)
    (folder / str(number) / "cgroup").write_text(cgroup)
    for index, target in enumerate(targets):
        (folder / str(number) / "fd" / str(index)).symlink_to(target)


def test_containers_with_a_gpu_are_counted_once(in_use: Any, tmp_path: Path) -> None:
    process(tmp_path, 1, f"0::/system.slice/docker-{ID}.scope\n", "/dev/null", "/dev/nvidia0")
    process(tmp_path, 2, f"0::/system.slice/docker-{ID}.scope\n", "/dev/nvidiactl")
    process(tmp_path, 3, f"12:devices:/docker/{'a' * 64}\n", "/dev/nvidia-uvm")
    process(tmp_path, 4, f"0::/system.slice/docker-{'b' * 64}.scope\n", "/dev/null")
    process(tmp_path, 5, "0::/system.slice/nvidia-persistenced.service\n", "/dev/nvidia0")
    process(tmp_path, 6, "0::/kubepods.slice/cri-containerd-1.scope\n", "/dev/nvidia0")
    process(tmp_path, 7, f"0::/system.slice/nerdctl-{'c' * 64}.scope\n", "/dev/nvidia1")
    process(tmp_path, 8, f"0::/machine.slice/libpod-{'d' * 64}.scope/container\n", "/dev/nvidia1")
    assert in_use.gpu_containers(str(tmp_path)) == 4


def test_chains_that_drop_what_is_forwarded(in_use: Any) -> None:
    """Docker's and ufw's by the name that admins know; IPv6 is not the pods'."""
    assert in_use.dropping_chains(CHAINS) == ["iptables FORWARD", "inet company passing"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("Requires=sysinit.target docker.socket containerd.service system.slice\nBindsTo=\n", True),
        ("Requires=sysinit.target\nBindsTo=containerd.service\n", True),
        ("Requires=docker.socket sysinit.target\nBindsTo=\nWants=containerd.service\n", False),
        ("", False),
    ],
)
def test_units_of_old_docker_stop_with_containerd(
    in_use: Any, monkeypatch: pytest.MonkeyPatch, shown: str, expected: bool
) -> None:
    """docker-ce 20.10, 19.03, 26; no Docker."""
    monkeypatch.setattr(in_use, "command", lambda _argv, _timeout_s: (0, shown))
    assert in_use.stops_with_containerd() is expected


def test_networks_of_others_are_found(in_use: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("87-podman-bridge.conflist", "10-containerd-net.conflist", ".kept", "README"):
        (tmp_path / name).touch()
    monkeypatch.setattr(in_use, "CNI_FOLDER", str(tmp_path))
    assert in_use.cni_files() == ["10-containerd-net.conflist", "87-podman-bridge.conflist"]


@pytest.mark.parametrize(("name", "bridge", "others"), [("pods", "cni0", 0), ("pods", "old0", 1), ("old", "cni0", 1)])
def test_what_containerd_wrote_for_an_earlier_version_is_no_network_of_others(
    in_use: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, bridge: str, others: int
) -> None:
    """It stays in the folder that containerd no longer reads."""
    written = {"name": name, "plugins": [{"type": "bridge", "bridge": bridge}, {"type": "portmap"}]}
    (tmp_path / "10-containerd-net.conflist").write_text(json.dumps(written))
    monkeypatch.setattr(in_use, "CNI_FOLDER", str(tmp_path))
    assert len(in_use.cni_files()) == others


def test_containers_that_the_new_containerd_cannot_take_over(tmp_path: Path) -> None:
    """Docker 19.03's shim was removed from containerd 2, its container would be lost to Docker."""
    lines = {
        1: "containerd-shim\0-namespace\0moby\0-workdir\0/var/lib/containerd/x\0",
        2: "/usr/bin/containerd-shim-runc-v2\0-namespace\0moby\0-id\0a\0",
        3: "/usr/bin/containerd-shim-runc-v1\0-namespace\0k8s.io\0-id\0b\0",
        4: "grep\0containerd-shim\0",
        5: "",
    }
    for number, line in lines.items():
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "cmdline").write_text(line)
    assert module_util("pai_in_use").old_shims(str(tmp_path)) == 2
