"""Names and addresses: what is taken, what is refused, what the remedy names."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic_core import PydanticCustomError

from pai_install.site import names

GOOD: list[tuple[Callable[[object], str], str, str]] = [
    (names.read_host_name, "w1", "w1"),
    (names.read_host_name, "gpu-1.rack2.example.com", "gpu-1.rack2.example.com"),
    (names.read_host_name, "123", "123"),
    (names.read_host_name, "w" * 63, "w" * 63),
    (names.read_ip, "10.0.0.1", "10.0.0.1"),
    (names.read_ip, " 192.168.1.255 ", "192.168.1.255"),
    (names.read_cidr, "10.200.0.0/13", "10.200.0.0/13"),
    (names.read_cidr, "0.0.0.0/0", "0.0.0.0/0"),
    (names.read_url, "https://mirror.example.com/", "https://mirror.example.com"),
    (names.read_url, "http://10.0.0.1:5000", "http://10.0.0.1:5000"),
    (names.read_absolute_path, "/mnt/docker/", "/mnt/docker"),
    (names.read_absolute_path, "/", "/"),
    (names.read_server, "ntp.example.com", "ntp.example.com"),
    (names.read_server, "fd00::1", "fd00::1"),
    (names.read_label_key, "example.com/team", "example.com/team"),
    (names.read_label_key, "team", "team"),
    (names.read_label_value, "", ""),
    (names.read_label_value, "v1.0_a", "v1.0_a"),
    (names.read_taint, "dedicated=x:NoSchedule", "dedicated=x:NoSchedule"),
    (names.read_taint, "gone:NoExecute", "gone:NoExecute"),
    (names.read_user_name, "DOMAIN\\user", "DOMAIN\\user"),
    (names.read_user_name, "first.last@example.com", "first.last@example.com"),
    (names.read_resource, "nvidia.com/gpu", "nvidia.com/gpu"),
    (names.read_resource, "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb"),
    (names.read_registry, "mirror.registry.io:5000", "mirror.registry.io:5000"),
    (names.read_registry, "172.19.0.0/16", "172.19.0.0/16"),
    (names.read_flag_name, "max-pods", "max-pods"),
]

BAD: list[tuple[Callable[[object], str], str, str]] = [
    (names.read_host_name, "Worker1", "write worker1"),
    (names.read_host_name, "gpu_1", "rename it to gpu-1"),
    (names.read_host_name, "GPU_1", "rename it to gpu-1"),
    (names.read_host_name, "-w", "use letters"),
    (names.read_host_name, "w.", "use letters"),
    (names.read_host_name, "w" * 64, "use letters"),
    (names.read_host_name, "a." * 127 + "b" * 10, "use letters"),
    (names.read_host_name, "wörker", "use letters"),
    (names.read_host_name, "localhost.localdomain", "name of its own"),
    (names.read_ip, "999.9.9.9", "0 to 255"),
    (names.read_ip, "10.0.0.01", "leading zeros"),
    (names.read_ip, "::1", "IPv6"),
    (names.read_ip, "10.0.0", "looks like"),
    (names.read_ip, "worker1", "looks like"),
    (names.read_ip, "0.0.0.0", "its address"),  # noqa: S104 - a value, nothing binds
    (names.read_ip, "224.0.0.1", "its address"),
    (names.read_ip, "255.255.255.255", "its address"),
    (names.read_ip, "127.0.0.1", "its address"),
    (names.read_cidr, "10.200.0.0", "looks like"),
    (names.read_cidr, "10.200.0.1/13", "write 10.200.0.0/13"),
    (names.read_cidr, "10.0.0.0/33", "looks like"),
    (names.read_cidr, "fd00::/8", "looks like"),
    (names.read_url, "mirror.example.com", "http://"),
    (names.read_url, "ftp://x", "http://"),
    (names.read_url, "https://", "http://"),
    (names.read_url, "http://x:99999", "http://"),
    (names.read_url, "http://[::1", "http://"),
    (names.read_url, "http://a b", "http://"),
    (names.read_absolute_path, "mnt/docker", "from the root"),
    (names.read_absolute_path, "~/x", "from the root"),
    (names.read_server, "http://x", "no scheme"),
    (names.read_label_key, "a/b/c", "looks like"),
    (names.read_label_key, "/b", "looks like"),
    (names.read_label_key, "x" * 64, "looks like"),
    (names.read_label_value, "two words", "up to 63"),
    (names.read_taint, "dedicated=x:Never", "looks like"),
    (names.read_taint, "dedicated", "looks like"),
    (names.read_taint, "bad key:NoSchedule", "looks like"),
    (names.read_taint, "k=bad value:NoSchedule", "up to 63"),
    (names.read_user_name, "-oProxyCommand=x", "account"),
    (names.read_user_name, "two words", "account"),
    (names.read_resource, "gpu", "nvidia.com/gpu"),
    (names.read_resource, "nvidia.com/", "nvidia.com/gpu"),
    (names.read_registry, "http://172.19.16.11:5000/", "write 172.19.16.11:5000"),
    (names.read_registry, "a b", "host:port"),
    (names.read_flag_name, "--max-pods", "without leading dashes"),
    (names.read_flag_name, "network-plugin", "remove it"),
]


@pytest.mark.parametrize(("read", "text", "value"), GOOD)
def test_good_values(read: Callable[[object], str], text: str, value: str) -> None:
    assert read(text) == value


@pytest.mark.parametrize(("read", "text", "remedy"), BAD)
def test_bad_values(read: Callable[[object], str], text: str, remedy: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        read(text)
    context = caught.value.context or {}
    assert remedy in context["remedy"]
    assert caught.value.type.startswith("site.")


@pytest.mark.parametrize("read", list(dict.fromkeys(read for read, _, _ in GOOD)))
@pytest.mark.parametrize("value", [{}, [], ["x"], "line\nend", "\x1b[0m", "\u202e"])
def test_containers_and_control_characters_are_refused(read: Callable[[object], str], value: object) -> None:
    with pytest.raises(PydanticCustomError):
        read(value)
