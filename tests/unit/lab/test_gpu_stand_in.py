"""Stand-ins for GPUs: which files they are, what they show, and what the health checks make of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.agents.gpu_use.smi import QUERY, parse
from pai_install.errors import ExitCode
from pai_install.lab import faults, names, observe
from pai_install.lab.gpu import DRIVER, PRODUCTS, STAND_IN_DIR, gpus_of, product_of
from pai_install.lab.gpu_stand_in import FOLDER, GpuState, entries, show, shown, work
from pai_install.lab.names import machine_names
from pai_install.lab.rootfs import machine_entries
from pai_install.lab.spec import LabGpus, LabMachine, LabSpec
from tests.errors import raises

GPU = LabMachine("gpu-1", IPv4Address("172.30.79.13"), gpus=LabGpus("A100", 8))
BARE = LabMachine("cpu-1", IPv4Address("172.30.79.14"))


@pytest.fixture
def lab(spec: LabSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LabSpec:
    """A lab whose one GPU machine has been made."""
    monkeypatch.setattr(names, "LABS_DIR", tmp_path / "labs")
    made = replace(spec, machines=(*spec.machines, GPU))
    root = machine_names(made, GPU).root
    for name, entry in entries(GPU).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if entry.link:
            path.symlink_to(entry.link)
        else:
            path.write_text(entry.content)
            path.chmod(entry.mode)
    return made


def ask(lab: LabSpec, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs one of the stand-ins on the controller host over the machine's folder."""
    root = machine_names(lab, GPU).root
    environment = {"PATH": os.environ["PATH"], "PAI_STAND_IN": str(root / FOLDER)}
    argv = [str(root / "usr/local/bin" / program), *words]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=20, check=False)


def test_a_machine_without_gpus_has_none_of_it() -> None:
    assert entries(BARE) == {}
    assert not any("stand" in name or "nvidia" in name for name in machine_entries(BARE, "pai", ""))


def test_a_machine_with_gpus_has_all_of_it() -> None:
    assert entries(GPU).items() <= machine_entries(GPU, "pai", "").items()


def test_everything_says_that_it_is_a_stand_in() -> None:
    for name, entry in entries(GPU).items():
        assert "stand-in" in f"{name} {entry.link} {entry.content}".replace("_", "-"), name


def test_programs_are_links_to_stand_ins() -> None:
    found = entries(GPU)
    for program in ("nvidia-smi", "lspci", "modinfo", "journalctl"):
        assert found[f"usr/local/bin/{program}"].link == f"{program}-stand-in"
        assert found[f"usr/local/bin/{program}-stand-in"].mode == 0o755


def test_machines_have_gpus_of_their_own_that_stay_the_same() -> None:
    other = replace(GPU, name="gpu-2")
    assert gpus_of(GPU) == gpus_of(replace(GPU))
    assert len({gpu.uuid for gpu in (*gpus_of(GPU), *gpus_of(other))}) == 16


@pytest.mark.parametrize("shell", sorted(STAND_IN_DIR.glob("*-stand-in")), ids=lambda path: path.name)
def test_shell_scripts_are_well_formed(shell: Path) -> None:
    subprocess.run(["sh", "-n", shell], check=True)
    assert os.access(shell, os.X_OK)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("A100", "NVIDIA A100-SXM4-80GB"),
        ("a100-80gb", "NVIDIA A100-SXM4-80GB"),
        ("NVIDIA H100", "NVIDIA H100 80GB HBM3"),
        ("tesla-t4", "Tesla T4"),
        ("K80", "NVIDIA K80"),
    ],
)
def test_product_of_a_model(model: str, name: str) -> None:
    assert product_of(model).name == name


def test_nvidia_smi_lists_the_gpus_of_the_type(lab: LabSpec, snapshot: SnapshotAssertion) -> None:
    lines = ask(lab, "nvidia-smi", "-L").stdout.splitlines()
    assert len(lines) == 8
    assert lines[3] == snapshot


def test_nvidia_smi_refuses_what_it_does_not_know(lab: LabSpec) -> None:
    done = ask(lab, "nvidia-smi", "--gpu-reset")
    assert done.returncode == 2
    assert "stand-in" in done.stderr


def test_modinfo_knows_the_module_that_is_not_there(lab: LabSpec) -> None:
    assert ask(lab, "modinfo", "-F", "version", "nvidia").stdout == f"{DRIVER}\n"


def test_journal_adds_what_the_kernel_did_not_say(lab: LabSpec, tmp_path: Path) -> None:
    # the one on the controller host is not asked: its journal is nobody's business here
    root = machine_names(lab, GPU).root
    program = root / "usr/local/bin/journalctl-stand-in"
    real = tmp_path / "journalctl"
    real.write_text('#!/bin/sh\necho "real $*"\n')
    real.chmod(0o755)
    program.write_text(program.read_text().replace("/usr/bin/journalctl", str(real)))
    assert ask(lab, "journalctl", "-k", "-b").stdout == "real -k -b\n"
    show(lab, GPU, GpuState.XID_79)
    assert ask(lab, "journalctl", "-u", "ssh").stdout == "real -u ssh\n"
    first, second = ask(lab, "journalctl", "-k", "-b").stdout.splitlines()
    assert first == "real -k -b"
    assert "NVRM: Xid (PCI:0000:14:00): 79," in second


def test_a_new_machine_is_healthy(lab: LabSpec) -> None:
    assert shown(lab, GPU) is GpuState.HEALTHY


def test_lost_gpu_is_one_of_them(lab: LabSpec) -> None:
    assert "0000:14:00.0" in show(lab, GPU, GpuState.GPU_LOST)
    answer = ask(lab, "nvidia-smi", "-q", "-x").stdout
    assert answer.count("<gpu id=") == 8
    assert [part for part in answer.split("<gpu id=") if "GPU is lost" in part] == [answer.split("<gpu id=")[5]]


def test_mismatch_ends_with_the_drivers_own_status_and_words(lab: LabSpec) -> None:
    show(lab, GPU, GpuState.DRIVER_MISMATCH)
    done = ask(lab, "nvidia-smi", "-q", "-x")
    assert done.returncode == 18
    assert done.stdout.startswith("Failed to initialize NVML: Driver/library version mismatch\n")


@pytest.mark.parametrize("state", list(GpuState))
def test_healing_takes_everything_back(lab: LabSpec, state: GpuState) -> None:
    folder = machine_names(lab, GPU).root / FOLDER
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    show(lab, GPU, state)
    assert shown(lab, GPU) is state
    show(lab, GPU, GpuState.HEALTHY)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_one_state_follows_another_without_remains(lab: LabSpec) -> None:
    show(lab, GPU, GpuState.DRIVER_HANG)
    show(lab, GPU, GpuState.GPU_LOST)
    assert not (machine_names(lab, GPU).root / FOLDER / "sleep").exists()


def test_a_machine_without_gpus_can_show_nothing(lab: LabSpec) -> None:
    with raises("lab-machine-without-gpus") as caught:
        show(lab, lab.machines[0], GpuState.GPU_LOST)
    assert caught.value.exit_code is ExitCode.USAGE
    assert shown(lab, lab.machines[0]) is GpuState.HEALTHY


def test_a_machine_that_was_not_made_can_show_nothing(lab: LabSpec) -> None:
    shutil.rmtree(machine_names(lab, GPU).root)
    with raises("lab-machine-without-stand-ins"):
        show(lab, GPU, GpuState.GPU_LOST)


def test_status_names_what_is_shown(lab: LabSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    show(lab, GPU, GpuState.GPU_LOST)
    monkeypatch.setattr(observe, "present_faults", lambda _spec, _one: ())
    assert observe.faults_of(lab, GPU) == ("gpu-lost",)
    assert observe.faults_of(lab, lab.machines[0]) == ()


def test_heal_heals_the_gpus_too(lab: LabSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    show(lab, GPU, GpuState.DRIVER_HANG)
    monkeypatch.setattr(faults, "present_faults", lambda _spec, _one: ())
    monkeypatch.setattr(faults, "_groups", lambda _spec, _one: ())
    assert faults.clear(lab, GPU) == ("driver-hang",)
    assert shown(lab, GPU) is GpuState.HEALTHY
    assert faults.clear(lab, GPU) == ()


def test_every_product_has_a_name_of_its_own() -> None:
    assert len({product.name for product in PRODUCTS}) == len(PRODUCTS)


def test_how_busy_they_are_is_what_is_said(lab: LabSpec) -> None:
    uuids = [gpu.uuid for gpu in gpus_of(GPU)]
    assert set(parse(ask(lab, "nvidia-smi", *QUERY).stdout)) == set(uuids)
    assert work(lab, GPU, [90, 5]).endswith("compute 90 %, 5 %, 5 %, 5 %, 5 %, 5 %, 5 %, 5 % of the time")
    found = parse(ask(lab, "nvidia-smi", *QUERY).stdout)
    assert [found[uuid].busy for uuid in uuids] == [90.0, *[5.0] * 7]
    show(lab, GPU, GpuState.DRIVER_MISMATCH)
    assert ask(lab, "nvidia-smi", *QUERY).returncode == 18


def test_only_a_machine_that_was_made_and_has_gpus_is_busy(lab: LabSpec) -> None:
    with raises("lab-machine-without-gpus"):
        work(lab, lab.machines[0], [1])
    shutil.rmtree(machine_names(lab, GPU).root)
    with raises("lab-machine-without-stand-ins"):
        work(lab, GPU, [1])
