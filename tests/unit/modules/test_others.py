"""Pure parts of the modules that need a real machine for the rest (the lab runs those)."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util

Library = Callable[[str], Any]


def test_unit_is_stale_when_a_file_is_younger_than_its_start(managed: Any, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("x")
    now = time.clock_gettime(time.CLOCK_MONOTONIC)
    earlier, later = str(int((now - 60) * 1e6)), str(int((now + 60) * 1e6))
    assert managed.newer_than_start([str(path)], {"InactiveExitTimestampMonotonic": earlier}) == [str(path)]
    assert managed.newer_than_start([str(path)], {"InactiveExitTimestampMonotonic": later}) == []
    assert managed.newer_than_start([str(tmp_path / "gone")], {"InactiveExitTimestampMonotonic": earlier}) == []


def test_fstab_swap_lines_are_commented_and_only_those(library: Library, snapshot: SnapshotAssertion) -> None:
    kernel = library("pai_kernel")
    table = (
        "/dev/sda1 / ext4 defaults 0 1\nUUID=1 none swap sw 0 0\n# /dev/b none swap sw 0 0\n/swapfile swap swap x 0 0\n"
    )
    found = re.findall(kernel.SWAP_LINE, table, re.MULTILINE)
    assert found == snapshot


class Calls:
    """What a module asked of programs."""

    def __init__(self) -> None:
        self.check_mode, self.params, self.run = False, {"container": False}, list[str]()

    def run_command(self, words: list[str], *, check_rc: bool = False) -> tuple[int, str, str]:
        """Succeeds, with nothing printed."""
        del check_rc
        self.run.append(" ".join(words))
        return 0, "", ""

    def preserved_copy(self, source: str, target: str) -> None:
        """As AnsibleModule's."""
        shutil.copy2(source, target)


def test_fstab_keeps_its_bytes_its_mode_and_its_first_copy(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, table = library("pai_kernel"), tmp_path / "fstab"
    monkeypatch.setattr(kernel, "FSTAB", str(table))
    monkeypatch.setattr(kernel.Kernel, "mask_swap_units", lambda _self: None)
    for number in (1, 2):
        table.write_bytes(b"LABEL=Gr\xf6\xdfe /data ext4 defaults 0 2\n/swap%d none swap sw 0 0\n" % number)
        table.chmod(0o600)
        kernel.Kernel(Calls()).swap_off()
        assert table.read_bytes().startswith(b"LABEL=Gr\xf6\xdfe /data ext4 defaults 0 2\n# swap is off")
        assert table.stat().st_mode & 0o777 == 0o600
    assert b"\n/swap1 none" in (tmp_path / "fstab.pai-backup").read_bytes()


@pytest.mark.parametrize(
    ("state", "calls"),
    [
        ({"LoadState": "loaded", "UnitFileState": "enabled"}, ["systemctl disable --now a.swap"]),
        ({"LoadState": "loaded", "ActiveState": "active"}, ["systemctl disable --now a.swap"]),
        ({"LoadState": "loaded", "UnitFileState": "disabled", "ActiveState": "inactive"}, []),
    ],
)
def test_swap_unit_that_an_administrator_wrote_is_disabled(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: dict[str, str], calls: list[str]
) -> None:
    """systemctl masks no unit whose own file is in /etc/systemd/system."""
    kernel, module = library("pai_kernel"), Calls()
    (tmp_path / "a.swap").write_text("[Swap]\nWhat=/swap\n")
    (tmp_path / "masked.swap").symlink_to("/dev/null")
    monkeypatch.setattr(kernel, "UNITS", str(tmp_path))
    monkeypatch.setattr(kernel, "ZRAM_CONFIGS", (str(tmp_path / "none"),))
    monkeypatch.setattr(kernel, "unit_state", lambda name: state if name == "a.swap" else {"LoadState": "masked"})
    monkeypatch.setattr(kernel, "note", lambda *_words: None)
    kernel.Kernel(module).mask_swap_units()
    assert module.run[1:] == calls


@pytest.mark.parametrize(("value", "shown"), [(True, "1"), (10, "10"), ("40000   65535", "40000 65535")])
def test_sysctl_values_as_the_kernel_shows_them(library: Library, value: Any, shown: str) -> None:
    assert library("pai_kernel").sysctl_value(value) == shown


def test_containers_set_only_their_own_parameters(library: Library) -> None:
    kernel = library("pai_kernel")
    assert kernel.settable("net.ipv4.ip_forward", container=True)
    assert not kernel.settable("vm.overcommit_memory", container=True)
    assert kernel.settable("vm.overcommit_memory", container=False)


def test_kubeadm_errors_are_found_in_its_output(library: Library) -> None:
    output = """[preflight] Running pre-flight checks
\t[ERROR Port-10250]: Port 10250 is in use
\t[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists
error: error execution phase preflight: preflight checks failed"""
    assert library("pai_kubeadm").cause(output).startswith("[ERROR Port-10250]: Port 10250 is in use; [ERROR FileAvail")


def test_record_keeps_the_later_of_two_expectations(library: Library) -> None:
    older = {"kind": "file", "path": "/a", "sha256": "1", "mode": "0644"}
    newer = {**older, "sha256": "2"}
    other = {"kind": "unit", "name": "x.service", "enabled": True, "active": True}
    assert module_util("pai_role_record").flat([[older, other], [[newer]]]) == [newer, other]


def test_two_nomatch_rules_on_one_file_are_both_kept(library: Library) -> None:
    rules = [{"kind": "nomatch", "path": "/a", "regexp": "x"}, {"kind": "nomatch", "path": "/a", "regexp": "y"}]
    assert module_util("pai_role_record").flat(rules) == rules


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_node_asks_another_one(library: Library, count: int) -> None:
    ring = library("pai_cluster_check").ring(count)
    assert sorted(ring.values()) == list(range(count))
    assert count == 1 or all(asks != asked for asks, asked in ring.items())


@pytest.mark.parametrize(("count", "most"), [(1, 64), (64, 64), (65, 64), (1000, 64), (130, 64)])
def test_a_large_cluster_is_proven_by_an_even_sample(library: Library, count: int, most: int) -> None:
    check = library("pai_cluster_check")
    nodes = [f"n{number}" for number in range(count)]
    found = check.sampled(nodes, most)
    assert len(found) == len(set(found)) == min(count, most)
    assert found == sorted(found, key=nodes.index)
    if count > most:
        places = [nodes.index(name) for name in found]
        gaps = [after - before for before, after in itertools.pairwise(places)]
        assert max(gaps) - min(gaps) <= 1


def test_a_sample_is_said_and_a_whole_is_not(library: Library) -> None:
    module = library("pai_cluster_check")
    params: dict[str, Any] = {"nodes": [f"n{number}" for number in range(70)], "most": 64, "peer": "", "timeout": 1}
    (said,) = module.ClusterCheck(SimpleNamespace(params=params)).sample_findings()
    assert (said["id"], said["verdict"]) == ("verify-sample", "SKIP")
    assert "64 of 70 nodes" in said["message"]
    whole = module.ClusterCheck(SimpleNamespace(params={**params, "nodes": params["nodes"][:64]}))
    assert whole.sample_findings() == []


def test_a_single_node_asks_a_peer_that_is_not_judged(library: Library) -> None:
    """A new machine is proven alone, and its way to another machine with it."""
    check = library("pai_cluster_check")
    assert check.with_peer(["new"], "master") == ["new", "master"]
    assert check.with_peer(["master"], "master") == ["master"]
    assert check.with_peer(["new"], "") == ["new"]
    assert check.with_peer(["one", "two"], "master") == ["one", "two"]


def test_pods_that_do_not_run_say_why(library: Library, cluster_state: Any, snapshot: SnapshotAssertion) -> None:
    status = {
        "phase": "Pending",
        "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}],
    }
    check = library("pai_cluster_check")
    pods = {"node-0": cluster_state.pod_facts({"metadata": {"name": "node-0"}, "status": status})}
    assert not check.runs(pods, "node-0")
    assert check.pod_failure(pods, "node-0") == snapshot
    assert check.pod_failure(pods, "node-1") == "not there"


@pytest.mark.parametrize(("text", "version"), [("version = 2\n", 2), ("version=4", 4), ("root = '/x'\n", 1), ("", 1)])
def test_containerd_format_version(library: Library, text: str, version: int) -> None:
    assert library("pai_containerd_config").format_version(text) == version


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("", "/var/lib/containerd"),
        ("version = 2\nroot = '/fast/containerd'\n", "/fast/containerd"),
        ('root="/fast"\n[metrics]\nroot = "/other"\n', "/fast"),
        ("version = 3\n[plugins.x]\n  root = '/other'\n", "/var/lib/containerd"),
    ],
)
def test_where_containerd_keeps_its_data(library: Any, text: str, root: str) -> None:
    assert library("pai_containerd_config").root_of(text) == root


def test_programs_are_bounded_in_time_and_speak_english(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = module_util("pai_machine").command
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    assert ask(["printenv", "LC_ALL"]) == (0, "C\n")
    assert ask(["a-program-that-nobody-has"]) == (127, "")
    began = time.monotonic()
    assert ask(["sleep", "30"], timeout_s=0.2) == (124, "")
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("path", [None, "", "/nowhere"])
def test_programs_in_sbin_need_no_path_of_a_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str | None
) -> None:
    (tmp_path / "nft").write_text("#!/bin/sh\necho seen\n")
    (tmp_path / "nft").chmod(0o755)
    monkeypatch.setattr(module_util("pai_machine"), "SYSTEM_PATH", str(tmp_path))
    monkeypatch.delenv("PATH") if path is None else monkeypatch.setenv("PATH", path)
    assert module_util("pai_machine").command(["nft"]) == (0, "seen\n")


def test_programs_may_say_what_is_no_text_and_find_no_input() -> None:
    ask = module_util("pai_machine").command
    assert ask(["sh", "-c", "cat; printf 'a\\377b'; echo no >&2; exit 3"]) == (3, "a\ufffdb")


def test_os_release_and_memory_of_this_box() -> None:
    machine = module_util("pai_machine")
    assert machine.os_release()["id"]
    assert machine.memory_bytes() > 1 << 28
    assert machine.cgroup_version() in (1, 2)


def test_os_release_with_and_without_quotation_marks() -> None:
    known = module_util("pai_machine").os_release(
        'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\nVERSION_ID="12"\n# x\n'
    )
    assert known == {"pretty_name": "Debian GNU/Linux 12", "id": "debian", "version_id": "12"}


def test_memory_that_the_kernel_does_not_name_is_none() -> None:
    assert module_util("pai_machine").memory_bytes("MemFree: 3 kB\n") is None
    assert module_util("pai_machine").memory_bytes("MemTotal:       16384 kB\n") == 16 << 20


def test_mtu_is_asked_of_the_kernel_and_not_read_from_sys(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's /sys/class/net is its host's: the two may differ."""
    facts = library("pai_facts")
    monkeypatch.setattr(facts, "read", lambda _path: "Iface Destination Gateway\neth0 00000000 0101A8C0\n")
    said = "2: eth0@if9: <BROADCAST,UP> mtu 9000 qdisc noqueue state UP mode DEFAULT"
    asked = SimpleNamespace(run_command=lambda argv: (0, said if argv[-1] == "eth0" else "", ""))
    assert facts.default_mtu(asked) == 9000
    monkeypatch.setattr(facts, "read", lambda _path: "Iface Destination Gateway\n")
    assert facts.default_mtu(asked) == 1500


ADDRESSES = """[{"ifname": "eth0", "mtu": 1500, "addr_info": [{"local": "192.168.1.5", "prefixlen": 24}]},
 {"ifname": "ens1", "mtu": 9000, "addr_info": [{"local": "10.0.0.5", "prefixlen": 24}]},
 {"ifname": "down", "mtu": 1500}]"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [((0, ADDRESSES, ""), {"192.168.1.5": 1500, "10.0.0.5": 9000}), ((1, "", "no"), {}), ((0, "[{}", ""), {})],
)
def test_every_address_has_the_mtu_of_its_interface(
    library: Library, said: tuple[int, str, str], expected: dict[str, int]
) -> None:
    """The default route may lead through another network than the machines' own."""
    assert library("pai_facts").mtus(SimpleNamespace(run_command=lambda _argv: said)) == expected


def test_test_pods_wait_for_their_account(library: Library) -> None:
    """A controller manager that has just restarted makes it late: without it the API server refuses every pod."""
    asked: list[str] = []
    answer = sys.modules[library("pai_cluster_check").Kubectl.__module__].Answer

    def run(*words: str, data: str | None = None, timeout_s: float = 0) -> Any:
        verb = next(word for word in words if not word.startswith("--"))
        asked.append(verb)
        if verb == "apply" and "wait" not in asked:
            return answer(1, "", 'serviceaccount "default" not found')
        return answer(0, '{"items": []}', "")

    params = {"nodes": [], "image": "x", "peer": "", "runtime_class_nodes": [], "timeout": 1}
    module = SimpleNamespace(params=params)
    check = library("pai_cluster_check").ClusterCheck(module)
    check.client.run = run
    assert check.check_from_pods() == []
    assert asked[:4] == ["delete", "create", "wait", "apply"]


def endpoint_slice(service: str, *ready: bool) -> dict[str, Any]:
    """One slice, as the API gives it; without endpoints it has null in their place."""
    endpoints = [{"addresses": ["10.1.0.2"], "conditions": {"ready": one}} for one in ready] or None
    return {"metadata": {"labels": {"kubernetes.io/service-name": service}}, "endpoints": endpoints}


def test_services_are_asked_once_they_lead_to_their_pods(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A controller manager in the kubelet's back-off takes longer than the half minute of one question."""
    module = library("pai_cluster_check")
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(module, "time", clock)
    check = module.ClusterCheck(SimpleNamespace(params={"nodes": ["a"], "peer": "", "timeout": 180}))
    before = [endpoint_slice("node-0", True), endpoint_slice("node-1")]
    after = [endpoint_slice("node-0", True), endpoint_slice("node-1", False, True)]
    monkeypatch.setattr(check, "items", lambda *_words: after if now[0] >= 50 else before)
    check.wait_for_endpoints({"node-0", "node-1"})
    assert now[0] == 50
    monkeypatch.setattr(check, "items", lambda *_words: before)
    check.wait_for_endpoints({"node-0", "node-1"})
    assert now[0] == 180


@pytest.mark.parametrize(
    ("resource", "waited_s"),
    [("nvidia.com/gpu", 9), ("nvidia.com/mig-1g.10gb", 9), ("cpu", 30)],
)
def test_gpus_of_a_node_that_has_just_joined_are_waited_for(
    library: Library, monkeypatch: pytest.MonkeyPatch, resource: str, waited_s: int
) -> None:
    """The kubelet reports devices up to 10 s after its start: a health check before it would fail."""
    module = library("pai_cluster_check")
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(module, "time", clock)
    params = {"nodes": ["cpu-1", "gpu-1"], "peer": "", "runtime_class_nodes": ["gpu-1"], "timeout": 180}
    check = module.ClusterCheck(SimpleNamespace(params=params))

    def items(*_words: str) -> list[dict[str, Any]]:
        offered = {resource: "8"} if now[0] >= 9 else {}
        return [{"metadata": {"name": "gpu-1"}, "status": {"allocatable": offered}}]

    monkeypatch.setattr(check, "items", items)
    check.wait_for_devices()
    assert now[0] == waited_s


BACKOFF = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
STARTING = {"waiting": {"reason": "ContainerCreating"}}


@pytest.mark.parametrize(
    ("others", "waited_s"),
    [
        pytest.param([BACKOFF], 45, id="no image"),
        pytest.param([BACKOFF, STARTING], 180, id="another may still come"),
    ],
)
def test_images_that_are_not_there_are_not_waited_for_to_the_end(
    library: Library, monkeypatch: pytest.MonkeyPatch, others: list[dict[str, Any]], waited_s: int
) -> None:
    module = library("pai_cluster_check")
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(module, "time", clock)
    params = {"nodes": ["a"], "image": "x", "peer": "", "namespaces": ["kube-system"], "timeout": 180}
    check = module.ClusterCheck(SimpleNamespace(params=params))
    pods = [{"metadata": {"name": "dns"}, "status": {"containerStatuses": [{"state": state}]}} for state in others]
    monkeypatch.setattr(check, "items", lambda *_words: pods)
    found = check.check_system_pods()
    assert {one["verdict"] for one in found} == {"FAIL"}
    assert waited_s <= now[0] <= waited_s + 1


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"managed": null, "settings": {}}', '{"managed": [1], "settings": {}}', "x"]
)
def test_a_record_in_another_form_is_drift_and_no_failure(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    facts = library("pai_facts")
    monkeypatch.setattr(facts, "ROLES_DIR", str(tmp_path))
    (tmp_path / "base.json").write_text(text)
    found = facts.roles()["base"]
    assert found["settings"] == {}
    assert "cannot be used" in found["drift"][0]


def test_services_are_asked_by_the_addresses_that_the_api_knows(library: Library, cluster_state: Any) -> None:
    """A kubelet that has just found the API again starts pods without those of new Services in their environment."""
    module = library("pai_cluster_check")
    answer = sys.modules[module.Kubectl.__module__].Answer
    asked: list[str] = []

    def run(*words: str, data: str | None = None, timeout_s: float = 0) -> Any:
        asked.append(words[-1])
        return answer(0, "node-1 Address HTTPS server", "")

    params = {"nodes": ["one", "two"], "peer": "", "runtime_class_nodes": [], "timeout": 1}
    check = module.ClusterCheck(SimpleNamespace(params=params))
    check.client = SimpleNamespace(run=run)
    services = [{"metadata": {"name": f"node-{it}"}, "spec": {"clusterIP": f"10.96.0.{it}"}} for it in (0, 1)]
    check.addresses = module.addresses(services)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    running = cluster_state.pod_facts({"metadata": {"name": "node-0"}, "spec": {}, "status": status})
    found = check.check_node_pods(0, {"node-0": running})
    assert [(one["id"], one["verdict"]) for one in found] == [(it, "PASS") for it in ("cluster-dns", "service", "api")]
    assert "nc -w 5 10.96.0.1 80" in asked[1]
    assert "NODE_1_SERVICE_HOST" not in asked[1]
