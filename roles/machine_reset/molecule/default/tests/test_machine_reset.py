"""A machine that is as it was: nothing of ours, all of the admin's."""

from __future__ import annotations

from testinfra.host import Host

# the lab's own on each of its machines: what makes control groups writable before systemd starts the rest, and the
# leave of the site's user to become root
OF_THE_LAB = ("pai-lab-early", "/etc/sudoers.d/90-pai")


def installed(listed: str) -> set[str]:
    """The packages that are installed; of Docker's, which keeps its data, the settings stay."""
    return {line for line in listed.splitlines() if line.endswith(" installed")}


def test_what_the_admin_wrote_is_back(host: Host) -> None:
    assert host.file("/etc/crictl.yaml").content_string == "runtime-endpoint: unix:///run/other.sock\n"
    assert host.file("/etc/default/kubelet").content_string == "KUBELET_EXTRA_ARGS=--v=1\n"


def test_no_file_of_ours_is_left(host: Host) -> None:
    found = host.check_output("find /etc /usr/local /var/lib/pai-install -name '*pai*' 2>/dev/null || true").split()
    left = [path for path in found if not any(name in path for name in OF_THE_LAB)]
    assert left == [], left
    assert "pai-install" not in host.file("/etc/hosts").content_string
    assert not host.file("/usr/local/bin/containerd").exists
    assert not host.file("/etc/kubernetes").exists


def test_the_packages_are_those_of_before(host: Host) -> None:
    now = host.check_output("dpkg-query --show --showformat '${Package} ${db:Status-Status}\\n'")
    assert installed(now) == installed(host.file("/root/packages").content_string)


def test_nothing_behind_a_mount_was_deleted(host: Host) -> None:
    assert host.file("/srv/kept/of-people").exists
    # the lab mounts this folder; a mount itself stays, and nothing is in it
    assert host.check_output("ls -A /var/lib/kubelet") == ""


def test_no_unit_of_ours_runs(host: Host) -> None:
    units = host.check_output("systemctl list-units --all --plain --no-legend").splitlines()
    assert [unit for unit in units if "pai-" in unit and not any(name in unit for name in OF_THE_LAB)] == []
    assert not host.service("kubelet").is_running
