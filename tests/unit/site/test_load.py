"""A folder -> a Site: what its values mean, and every problem of all files at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.reader import MAX_BYTES
from pai_install.errors import ExitCode
from pai_install.site import Site, SiteInvalid, load_site
from pai_install.site.load import read_site
from pai_install.site_edit.annotate import annotate
from tests.errors import raises
from tests.unit.site.sites import CONFIG, LAYOUT, large_layout, write_site

REPOSITORY = Path(__file__).parents[3]
LAYOUTS = sorted(path.parent for path in (REPOSITORY / "layouts").glob("*/layout.yaml"))
OPENPAI = REPOSITORY.parent / "shared" / "data" / "openpai"


def load(directory: Path, **files: str) -> Site:
    return load_site(write_site(directory, **files)).site


def test_a_site_is_read(tmp_path: Path) -> None:
    site = load(tmp_path)
    assert site.directory == tmp_path
    assert [machine.hostname for machine in site.machines] == ["m1", "w1"]
    assert [machine.hostname for machine in site.control_planes] == ["m1"]
    assert [machine.hostname for machine in site.workers] == ["w1"]
    sku = site.sku_of(site.machine("w1"))
    assert (sku.name, sku.mem_bytes, sku.vcore, sku.has_nvidia) == ("gpu", 220 * 2**30, 24, True)
    assert sku.device is not None
    assert (sku.device.type, sku.device.model, sku.device.count) == ("nvidia.com/gpu", "K80", 4)
    assert not site.skus["master"].has_nvidia
    assert site.services.given == ()


def test_unknown_machines_are_a_key_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        load(tmp_path).machine("nobody")


def test_settings_reach_every_machine_unless_it_has_its_own(tmp_path: Path) -> None:
    own = "    ssh: {user: other, port: 2222, key-file: /keys/w1}\n    become: false\n"
    site = load(tmp_path, layout=LAYOUT + own)
    first, second = site.machines
    assert (first.ssh.user, first.ssh.port, first.ssh.key_file) == ("admin", 22, tmp_path / "key")
    assert (second.ssh.user, second.ssh.port, second.ssh.key_file) == ("other", 2222, Path("/keys/w1"))
    assert (first.become, second.become) == (True, False)


def test_key_paths_start_at_the_site_or_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.chdir(tmp_path)
    write_site(tmp_path / "x", config="user: a\nssh_key_file_path: .pai/key\n")
    write_site(tmp_path / "y", config="user: a\nssh_key_file_path: ~/.ssh/id\n")
    relative = load_site(Path("x")).site
    assert relative.settings.ssh_key_file_path == tmp_path / "x" / ".pai" / "key"
    assert relative.directory == tmp_path / "x"
    assert load_site(Path("y")).site.settings.ssh_key_file_path == Path("/home/someone/.ssh/id")


def test_absent_machines_are_kept_aside(tmp_path: Path) -> None:
    site = load(
        tmp_path,
        layout=LAYOUT
        + LAYOUT[LAYOUT.index("  - hostname: w1") :].replace("w1", "w2").replace("10.0.0.2", "10.0.0.3")
        + "    absent: true\n",
    )
    assert [machine.hostname for machine in site.machines] == ["m1", "w1", "w2"]
    assert [machine.hostname for machine in site.present_machines] == ["m1", "w1"]
    assert [machine.hostname for machine in site.workers] == ["w1"]
    assert site.machine("w2").absent


def test_one_machine_may_do_everything(tmp_path: Path) -> None:
    layout = LAYOUT[: LAYOUT.index("  - hostname: w1")] + "    pai-worker: true\n"
    site = load(tmp_path, layout=layout.replace("machine-type: master", "machine-type: gpu"))
    [machine] = site.machines
    assert site.control_planes == site.workers == (machine,)


def test_labels_and_taints(tmp_path: Path) -> None:
    more = "    labels: {rack: r1, example.com/size: 8}\n    taints: ['dedicated=x:NoSchedule']\n"
    machine = load(tmp_path, layout=LAYOUT + more).machine("w1")
    assert machine.labels == {"rack": "r1", "example.com/size": "8"}
    assert machine.taints == ("dedicated=x:NoSchedule",)


def test_every_problem_of_every_file_at_once(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    write_site(
        tmp_path,
        layout=LAYOUT.replace("10.0.0.2", "10.0.0.256").replace("220Gi", "220GB"),
        config=CONFIG + "docker_data_rot: /x\nkubernetes_version: 1.16\n",
        services="docker-cache: [1]\nwhatever: {}\n",
    )
    with raises("site-invalid", kind=SiteInvalid) as caught:
        load_site(tmp_path)
    assert [(Path(p.file).name, p.line, p.severity) for p in caught.value.problems] == [
        ("layout.yaml", 11, "error"),
        ("layout.yaml", 20, "error"),
        ("config.yaml", 3, "error"),
        ("config.yaml", 4, "error"),
        ("services-configuration.yaml", 1, "error"),
        ("services-configuration.yaml", 2, "warning"),
    ]
    assert caught.value.exit_code is ExitCode.SITE_INVALID
    assert caught.value.message == snapshot
    assert caught.value.details == snapshot


def test_checks_between_entries_run_beside_entries_that_are_wrong(tmp_path: Path) -> None:
    layout = LAYOUT.replace("hostname: w1", "hostname: m1").replace("hostip: 10.0.0.2", "hostip: nowhere")
    write_site(tmp_path, layout=layout, config="ssh_key_file_path: key\npod_cidr: 10.0.0.0/12\n")
    reading = read_site(tmp_path)
    assert [problem.code for problem in reading.problems] == [
        "site.network-overlap", "site.duplicate-hostname", "site.ip-address", "site.missing",
    ]  # fmt: skip


def test_the_place_of_any_key_can_be_asked_later(tmp_path: Path) -> None:
    write_site(tmp_path, services="hivedscheduler:\n  webservice-port: 30096\n")
    sources = load_site(tmp_path).sources
    assert sources["services-configuration.yaml"].mark(("hivedscheduler", "webservice-port")) == (2, 3)


def test_services_are_typed(tmp_path: Path) -> None:
    site = load(tmp_path, services="docker-cache:\n  enabled: true\n  service_nodeport: 30500\npylon:\n")
    assert site.services.given == ("docker-cache",)
    assert site.services.docker_cache is not None
    assert (site.services.docker_cache.enabled, site.services.docker_cache.service_nodeport) == (True, 30500)


def test_a_missing_folder_names_both_files(tmp_path: Path) -> None:
    reading = read_site(tmp_path / "nowhere")
    assert [problem.code for problem in reading.problems] == ["site.no-file", "site.no-file"]


def test_a_site_cannot_be_changed(tmp_path: Path) -> None:
    site = load(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        site.settings.user = "other"  # type: ignore[misc]


@pytest.mark.parametrize("directory", LAYOUTS, ids=lambda path: path.name)
def test_every_example_is_valid_without_a_warning(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_PASSWORD", "from the environment")
    loaded = load_site(directory)
    assert loaded.problems == ()
    assert loaded.site.control_planes
    assert loaded.site.workers


def test_the_lab_is_one_control_plane_and_two_workers_with_devices() -> None:
    site = load_site(REPOSITORY / "layouts" / "lab").site
    assert [(m.hostname, m.hostip) for m in site.machines] == [
        ("lab-master", "172.30.77.11"), ("lab-worker1", "172.30.77.12"), ("lab-worker2", "172.30.77.13"),
    ]  # fmt: skip
    assert [site.sku_of(worker).has_nvidia for worker in site.workers] == [True, True]
    assert site.settings.component_source == "modules"
    assert site.settings.kubelet_config["evictionHard"] == {
        "nodefs.available": "1Gi", "imagefs.available": "1Gi", "memory.available": "100Mi",
    }  # fmt: skip


@pytest.mark.skipif(not OPENPAI.is_dir(), reason="the OpenPAI samples are not here")
def test_openpais_own_example_is_valid_unmodified() -> None:
    loaded = load_site(OPENPAI)
    assert [problem.code for problem in loaded.problems] == ["site.plain-secret"]
    assert loaded.site.openpai_style
    assert loaded.site.settings.docker_data_root == "/mnt/docker"
    assert [machine.hostname for machine in loaded.site.workers] == ["pai-worker1", "pai-worker2"]


def test_a_thousand_machines_are_read(tmp_path: Path) -> None:
    write_site(tmp_path, layout=large_layout(1000), config=CONFIG)
    site = load_site(tmp_path).site
    assert len(site.machines) == 1000
    assert len({machine.hostip for machine in site.machines}) == 1000


@pytest.mark.parametrize(
    "config", [b"user: caf\xe9\n", b"user: a\n\tpassword: x\n", b"user: a\n---\nuser: b\n", b"", b"- 1\n", b"\x00"]
)
def test_a_config_that_cannot_be_read_is_not_said_to_lack_a_login(tmp_path: Path, config: bytes) -> None:
    reading = read_site(write_site(tmp_path, config=config))
    assert [Path(problem.file).name for problem in reading.problems] == ["config.yaml"]


@pytest.mark.parametrize("kind", ["loop", "fifo", "folder", "missing"])
def test_a_config_that_is_no_file_is_one_problem(tmp_path: Path, kind: str) -> None:
    path = write_site(tmp_path) / "config.yaml"
    path.unlink()
    if kind == "loop":
        path.symlink_to(path)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    assert [problem.code for problem in read_site(tmp_path).problems] == ["site.no-file"]


@pytest.mark.parametrize("name", ["gpu machine", "8xA100/80G", "ü"])
def test_names_of_machine_types_are_openpais(tmp_path: Path, name: str) -> None:
    layout = LAYOUT.replace("  gpu:", f"  {name}:").replace("machine-type: gpu", f"machine-type: {name}")
    assert load_site(write_site(tmp_path, layout=layout)).site.machine("w1").sku == name


@pytest.mark.parametrize(("name", "version"), [("master.csv", "v1.0 to v1.4"), ("cluster-configuration.yaml", "v0.x")])
def test_an_old_site_is_sent_to_migrate(tmp_path: Path, name: str, version: str) -> None:
    (tmp_path / name).write_text("")
    (remedy,) = {problem.remedy for problem in read_site(tmp_path).problems}
    assert "pai-install migrate OLD --site NEW" in remedy
    assert version in remedy


def test_other_spelling_of_the_services_file_is_told(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (write_site(tmp_path) / "services-configuration.yml").write_text("grafana: {}\n")
    reading = read_site(tmp_path)
    assert reading.site is not None
    assert [(p.severity, p.message) for p in reading.problems] == snapshot


def test_link_to_no_services_file_is_an_error(tmp_path: Path) -> None:
    (write_site(tmp_path) / "services-configuration.yaml").symlink_to("services-configuration.yaml")
    assert [problem.code for problem in read_site(tmp_path).problems] == ["site.no-file"]


def test_folder_that_cannot_be_entered_is_an_invalid_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: object, *_words: object, **_more: object) -> None:
        raise PermissionError(13, "Permission denied")

    write_site(tmp_path, services="grafana: {}\n")
    monkeypatch.setattr(Path, "stat", refuse)
    assert {problem.message for problem in read_site(tmp_path).problems} == {"cannot be read: Permission denied"}


def test_file_that_is_too_large_names_the_limit(tmp_path: Path) -> None:
    write_site(tmp_path, config=b"#" * (MAX_BYTES + 1))
    [problem] = read_site(tmp_path).problems
    assert problem.message.endswith(" MiB, the limit for a file of a site")


def test_many_unknown_keys_are_told_in_time(tmp_path: Path) -> None:
    write_site(tmp_path, config=CONFIG + "".join(f"kubelet_cfg{number}: 1\n" for number in range(500)))
    reading = read_site(tmp_path)
    remedies = [problem.remedy for problem in reading.problems]
    assert (len(remedies), sum(map(bool, remedies))) == (500, 100)
    assert list(annotate(reading.sources["config.yaml"]))
