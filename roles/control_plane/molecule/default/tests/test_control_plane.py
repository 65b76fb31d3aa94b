"""A control plane that answers, after an attempt that was interrupted."""

from __future__ import annotations

import json

from testinfra.host import Host

KUBECTL = "/usr/local/bin/kubectl --kubeconfig /etc/kubernetes/admin.conf"


def test_the_api_is_ready(host: Host) -> None:
    assert host.check_output(f"{KUBECTL} get --raw /readyz") == "ok"


def test_the_api_is_the_one_that_all_machines_use(host: Host) -> None:
    endpoint = host.ansible.get_variables()["control_plane_endpoint"]
    assert f"server: https://{endpoint}" in host.file("/etc/kubernetes/admin.conf").content_string


def test_jobs_stay_away(host: Host) -> None:
    node = json.loads(host.check_output(f"{KUBECTL} get node control-plane --output json"))
    assert "node-role.kubernetes.io/control-plane" in {taint["key"] for taint in node["spec"]["taints"]}


def test_its_programs_run(host: Host) -> None:
    assert host.service("kubelet").is_running
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        assert host.process.filter(comm=name[:15])


def test_private_files_are_private(host: Host) -> None:
    for path in ("admin.conf", "super-admin.conf", "encryption/config.json", "pki/ca.key"):
        assert host.file(f"/etc/kubernetes/{path}").mode == 0o600, path


def test_etcdctl_needs_no_arguments(host: Host) -> None:
    assert "control-plane" in host.check_output("/usr/local/bin/etcdctl member list")


def test_etcdctl_of_the_admin_lies_beside_it(host: Host) -> None:
    assert host.check_output("cat /usr/local/bin/etcdctl.*.pai-backup") == "an older etcdctl"


def test_the_kubeconfig_of_another_cluster_is_kept(host: Host) -> None:
    assert host.file("/root/.kube/config").content_string == "# of another cluster\n"
