"""One version of everything, held, and nouveau kept away; the packages are stand-ins."""

from __future__ import annotations

import pytest
from testinfra.host import Host

EXACT = ("nvidia-open-kernel-dkms", "nvidia-smi", "libcuda1")


@pytest.mark.parametrize("name", EXACT)
def test_the_newest_version_that_all_have_is_installed(host: Host, name: str) -> None:
    assert host.package(name).version == "550.163.01-1"


def test_upgrades_of_the_distribution_leave_them_alone(host: Host) -> None:
    held = {*EXACT, "nvidia-persistenced"}
    assert held <= {*host.check_output("apt-mark showhold").splitlines()}
    simulated = host.check_output("apt-get --simulate upgrade").splitlines()
    # what else the distribution has is none of the role's business
    assert not held & {line.split()[1] for line in simulated if line.startswith("Inst ")}


def test_the_persistence_daemon_runs_at_boot(host: Host) -> None:
    assert host.service("nvidia-persistenced").is_enabled
    assert host.service("nvidia-persistenced").is_running


def test_nouveau_is_kept_away_and_the_admins_file_is_kept(host: Host) -> None:
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/pai-install-nouveau.conf").content_string
    assert "RestrictProfiling" in host.file("/etc/modprobe.d/nvidia-company.conf").content_string
