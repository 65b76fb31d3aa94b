"""What of a machine's interfaces and packet filters is for pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ansible_path import module_util


@pytest.fixture(scope="module")
def filters() -> Any:
    return module_util("pai_pod_filters")


POD_FILTERS = """\
table ip kube-proxy {
\tchain nat-prerouting {
\t\ttype nat hook prerouting priority dstnat; policy accept;
\t}
}
table ip nat {
\tchain KUBE-SERVICES {
\t}
\tchain DOCKER {
\t}
}
table ip flannel-ipv4 {
\tchain postrtg {
\t}
}
"""


def test_filters_of_pods_are_told_from_those_of_others(filters: Any) -> None:
    assert filters.filters_of_pods(POD_FILTERS) == (["ip kube-proxy", "ip flannel-ipv4"], ["KUBE-SERVICES"])
    assert filters.filters_of_pods("") == ([], [])


def test_interfaces_of_pods_are_told_from_those_of_others(filters: Any) -> None:
    names = ["lo", "eth0", "cni0", "flannel.1", "docker0", "kube-ipvs0", "cnibridge", "veth12"]
    assert filters.pod_interfaces([{"ifname": name} for name in names]) == ["cni0", "flannel.1", "kube-ipvs0"]
