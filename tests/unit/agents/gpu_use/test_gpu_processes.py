"""Which pod holds which device, as a kubelet says it on its socket; and kubelets that do not."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_install.agents.gpu_use.gpu_processes import KubeletError, call, devices_of_pods, frame, parse
from pai_install.lab.stand_in.device_plugin_stand_in import Kubelet, devices_message, fields, uuids
from tests.unit.agents.gpu_use.kubelet import answering, field, listing, message, well

HELD = {
    ("vision", "train-0"): {"nvidia.com/gpu": ["GPU-1", "GPU-2"]},
    ("vision", "cpu"): {},
    ("kube-system", "dns"): {"example.com/nic": ["eth1"]},
}


def test_pods_and_their_devices(tmp_path: Path) -> None:
    with answering(tmp_path / "socket", *well(listing(HELD))) as path:
        assert devices_of_pods(path) == HELD


def test_a_machine_with_many_pods(tmp_path: Path) -> None:
    many = {("vision", f"pod-{number}"): {"nvidia.com/gpu": [f"GPU-{number}"]} for number in range(300)}
    with answering(tmp_path / "socket", *well(listing(many))) as path:
        assert devices_of_pods(path) == many


@pytest.mark.parametrize(
    "answer",
    [
        [frame(1, 5, 1, b"\x88")],  # the call was refused, with a status alone
        [frame(3, 0, 1, bytes(4))],
        [frame(7, 0, 0, bytes(8))],
        [frame(0, 1, 1, message(b"abc")[:-1])],
        [frame(0, 1, 1, b"\1" + message(b"")[1:])],
        [frame(0, 1, 1, message(b"\x0a\xff"))],
        [frame(0, 1, 1, message(b"\x0f"))],
    ],
)
def test_a_kubelet_that_answers_otherwise(tmp_path: Path, answer: list[bytes]) -> None:
    with answering(tmp_path / "socket", *answer) as path, pytest.raises(KubeletError):
        devices_of_pods(path)


def test_no_kubelet(tmp_path: Path) -> None:
    with pytest.raises(KubeletError, match="socket"):
        devices_of_pods(tmp_path / "socket")


@given(st.binary(max_size=60))
def test_no_message_gives_another_error(content: bytes) -> None:
    with contextlib.suppress(IndexError, UnicodeDecodeError):
        parse(content)


class TestDevicePluginStandIn:
    """The stand-in of the lab, asked as the kubelet asks it: over the same frames."""

    def test_its_devices_are_what_nvidia_smi_lists(self) -> None:
        assert uuids("GPU 0: NVIDIA A100 (stand-in) (UUID: GPU-0a-1b)\nGPU 1: x (UUID: GPU-2c)\n") == [
            "GPU-0a-1b",
            "GPU-2c",
        ]

    def test_it_has_no_options_and_tells_each_container_its_gpus(self, tmp_path: Path) -> None:
        path = tmp_path / "plugin"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.bind(str(path))
            server.listen()
            thread = threading.Thread(target=lambda: Kubelet(server.accept()[0], ["GPU-1"]).serve(), daemon=True)
            thread.start()
            assert call(path, "/v1beta1.DevicePlugin/GetDevicePluginOptions") == b""
            thread.join(5)
            threading.Thread(target=lambda: Kubelet(server.accept()[0], ["GPU-1"]).serve(), daemon=True).start()
            long = b"GPU-" + b"x" * 200
            request = field(1, field(1, b"GPU-1") + field(1, b"GPU-2")) + field(1, field(1, long))
            answer = call(path, "/v1beta1.DevicePlugin/Allocate", request)
            containers = [list(fields(one)) for one in fields(answer)]
            assert [list(fields(parts[0]))[1] for parts in containers] == [b"GPU-1|GPU-2", long]
            assert all(b"/usr/bin/nvidia-smi" in parts[1] for parts in containers)

    def test_all_devices_are_healthy(self) -> None:
        assert devices_message(["GPU-1", "GPU-2"]) == b"".join(
            field(1, field(1, one) + field(2, b"Healthy")) for one in (b"GPU-1", b"GPU-2")
        )
