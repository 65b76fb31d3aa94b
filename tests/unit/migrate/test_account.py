"""The account of an old site is the whole site: every key, entry and file is in it, and says what is true."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.documents.document import Document, Items, Text
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath, dotted
from pai_install.documents.reader import read_document
from pai_install.migrate import Migration, migrate
from pai_install.migrate.account import Book, Fate
from pai_install.site import SiteInvalid, load_site
from tests.errors import raises

V0 = """\
machine-sku:
  BOX: {mem: 64, gpu: {type: titanx, count: 2}, cpu: {vcore: 16}}
machine-list:
  - {hostname: a, hostip: 10.0.0.1, machine-type: BOX, k8s-role: master, username: u, password: p}
  - {hostname: b, hostip: 10.0.0.2, machine-type: BOX, k8s-role: worker, username: u, password: p}
"""
LISTS = {"master.csv": "m1,10.0.0.1\n", "worker.csv": "w1,10.0.0.2\n", "config": "user: u\npassword: p\n"}


def migrated(tmp_path: Path, **files: str) -> Migration:
    """Migrates a folder with these files; '_' in a name stands for '.', '__' for '-'."""
    return migrate(
        written(tmp_path, {k.replace("__", "-").replace("_", "."): v for k, v in files.items()}), tmp_path / "new"
    )


def written(tmp_path: Path, files: dict[str, str]) -> Path:
    old = tmp_path / "old"
    old.mkdir()
    for name, content in files.items():
        (old / name).write_text(content)
    return old


def said(done: Migration, file: str, path: str) -> str:
    """What the account says of an entry: the outcome and its text."""
    (entry,) = [entry for entry in done.account if (entry.file, entry.path) == (file, path)]
    return f"{entry.outcome}: {entry.text}"


def layout(machine: str) -> str:
    """The layout with these keys added to both machines."""
    return V0.replace("hostname:", f"{machine}, hostname:")


def new_layout(done: Migration) -> Any:
    return read_document(done.files[0]).content


def test_ports_and_keys_of_generated_layouts(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    text = V0.replace(
        "username: u, password: p", 'username: u, ssh-port: "10080", ssh-keyfile-path: /k, ssh-secret-name: s'
    )
    done = migrated(tmp_path, layout_yaml=text)
    site = load_site(tmp_path / "new").site
    assert {(m.ssh.port, str(m.ssh.key_file)) for m in site.machines} == {(10080, "/k")}
    assert said(done, "layout.yaml", "machine-list[0].ssh-port") == snapshot
    assert said(done, "layout.yaml", "machine-list[1].ssh-keyfile-path") == snapshot
    assert said(done, "layout.yaml", "machine-list[1].ssh-secret-name").startswith("dropped: OpenPAI's own services")


def test_key_of_one_machine_is_its_own(tmp_path: Path) -> None:
    migrated(
        tmp_path,
        layout_yaml=V0.replace(
            "username: u, password: p}\n  - {hostname: b", "username: u, ssh-keyfile-path: /k}\n  - {hostname: b"
        ),
    )
    machines = {m.hostname: m.ssh for m in load_site(tmp_path / "new").site.machines}
    assert (str(machines["a"].key_file), machines["b"].key_file) == ("/k", None)


def test_storage_machines_stay_storage_machines(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    done = migrated(tmp_path, layout_yaml=layout('pai-storage: "true"'))
    assert all(machine.storage for machine in load_site(tmp_path / "new").site.machines)
    assert said(done, "layout.yaml", "machine-list[0].pai-storage") == snapshot


@pytest.mark.parametrize("name", ["config.yaml", "config.yml"])
def test_settings_beside_an_old_layout_rule(tmp_path: Path, name: str) -> None:
    config = (
        "user: root\nssh_key_file_path: /key\ndocker_data_root: /data\n"
        "openpai_docker_registry_mirrors: [http://mirror:5000]\n"
    )
    done = migrate(written(tmp_path, {"layout.yaml": layout("docker-data: /else"), name: config}), tmp_path / "new")
    site = load_site(tmp_path / "new").site
    assert (site.settings.user, site.settings.docker_data_root) == ("root", "/data")
    assert site.settings.openpai_docker_registry_mirrors == ("http://mirror:5000",)
    assert site.settings.password is None
    assert said(done, name, "openpai_docker_registry_mirrors[0]") == "carried over: config.yaml"
    assert said(done, "layout.yaml", "machine-list[0].username").startswith(
        f"dropped: {name} rules: it names the account"
    )
    assert said(done, "layout.yaml", "machine-list[0].docker-data").startswith(f"dropped: {name} rules, and its docker")


def test_a_config_without_an_account_takes_the_layouts(tmp_path: Path) -> None:
    migrated(tmp_path, layout_yaml=V0, config_yaml="docker_data_root: /data\n")
    settings_ = load_site(tmp_path / "new").site.settings
    assert (settings_.user, settings_.docker_data_root) == ("u", "/data")
    assert settings_.password is not None


def test_lists_beside_a_layout_do_not_rule(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    lists = {**LISTS, "master.csv": "a,10.0.0.1\n"}
    done = migrate(written(tmp_path, {**lists, "layout.yaml": V0}), tmp_path / "new")
    assert new_layout(done)["machine-sku"]["BOX"]["mem"] == "64Gi"
    assert said(done, "master.csv", "machine[0]") == snapshot
    assert said(done, "worker.csv", "machine[0]").startswith("dropped: line 1: w1 (10.0.0.2) is lost")
    assert said(done, "worker.csv", "") == snapshot
    assert load_site(tmp_path / "new").site.settings.user == "u"


CURRENT = """\
# measured
machine-sku: {a: {mem: 60Gi, cpu: {vcore: 4}}}
machine-list: [{hostname: m1, hostip: 10.0.0.1, machine-type: a, pai-master: "true", pai-worker: "true"}]
"""


def test_a_current_layout_beside_old_files_is_kept_word_for_word(tmp_path: Path) -> None:
    done = migrate(written(tmp_path, {**LISTS, "layout.yaml": CURRENT}), tmp_path / "new")
    assert done.files[0].read_text().endswith("\n\n" + CURRENT)
    assert said(done, "layout.yaml", "machine-sku.a.mem") == "carried over: layout.yaml"
    assert load_site(tmp_path / "new").site.settings.user == "u"


@pytest.mark.parametrize(
    ("old", "ruler"), [("cluster-configuration.yaml", "layout.yaml"), ("quick-start.yaml", "layout.yaml")]
)
def test_older_files_of_machines_are_told_to_be_overruled(tmp_path: Path, old: str, ruler: str) -> None:
    text = V0 if old.startswith("cluster") else "machines: [10.0.0.1]\nssh-username: u\nssh-password: p\n"
    done = migrate(written(tmp_path, {"layout.yaml": V0, old: text}), tmp_path / "new")
    assert {entry.text for entry in done.account if entry.file == old} == {f"{ruler} is there, too, and rules"}


def test_the_last_of_a_key_given_twice_counts_as_it_did(tmp_path: Path) -> None:
    text = V0.replace("hostip: 10.0.0.2,", "hostip: 10.0.0.2, hostip: 10.0.0.9,")
    done = migrated(tmp_path, layout_yaml=text)
    assert load_site(tmp_path / "new").site.machine("b").hostip == "10.0.0.9"
    both = [entry for entry in done.account if entry.path == "machine-list[1].hostip"]
    assert [(entry.outcome, entry.text) for entry in both] == [
        (Fate.DROPPED, "the key is given again in line 5, and OpenPAI took the last"),
        (Fate.KEPT, "layout.yaml: machine-list[1].hostip"),
    ]


def test_a_setting_given_twice_becomes_a_comment(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    lists = {**LISTS, "config": "user: x\ndocker_data_root: /a\nuser: y\npassword: p\n"}
    migrate(written(tmp_path, lists), tmp_path / "new")
    assert (tmp_path / "new" / "config.yaml").read_text() == snapshot


@pytest.mark.parametrize("wrong", ["  - {[a]: b}\n", "  - {a: !x b}\n", "  - {<<: text}\n"])
def test_what_is_wrong_with_an_old_layout_is_told_at_its_place(tmp_path: Path, wrong: str) -> None:
    with raises("site-invalid", kind=SiteInvalid) as caught:
        migrated(tmp_path, layout_yaml=V0 + wrong)
    assert [problem.line for problem in caught.value.problems] == [6]


@pytest.mark.parametrize(
    ("machine", "path", "why"),
    [
        ('node-exporter: "true"', "node-exporter", "OpenPAI's own services are not deployed"),
        ('watchdog: "true"', "watchdog", "OpenPAI's own services are not deployed"),
        ('rdma: "true"', "rdma", "pai-install knows nothing of this name"),
        ("username2: ", "username2", "pai-install knows nothing of this name"),
        ("zkid: ", "zkid", "has no value"),
        ("etcdid: [1]", "etcdid[0]", "is no text"),
        ("sshport: 10, ssh-port: 20", "ssh-port", "sshport is there, too, and OpenPAI read that"),
        ("machinetype: x", "machinetype", "machine-type is there, too"),
    ],
)
def test_keys_of_machines_that_have_no_place(tmp_path: Path, machine: str, path: str, why: str) -> None:
    done = migrated(tmp_path, layout_yaml=layout(machine))
    assert said(done, "layout.yaml", f"machine-list[0].{path}") == f"dropped: {why}"


def test_entries_that_are_no_machines_are_named(tmp_path: Path) -> None:
    done = migrated(tmp_path, layout_yaml=V0 + "  - just text\n")
    assert "(just text)" in said(done, "layout.yaml", "machine-list[2]")


def test_the_slip_of_openpais_own_example(tmp_path: Path) -> None:
    migrated(tmp_path, layout_yaml=V0.replace("machine-type", "machinetype"))
    assert {machine.sku for machine in load_site(tmp_path / "new").site.machines} == {"BOX"}


@pytest.mark.parametrize(
    ("machine", "root"),
    [("etcdid: a", "/var/lib/docker"), ("docker-data: /mnt/data", "/mnt/data")],
)
def test_dockers_data_stays_where_it_was(tmp_path: Path, machine: str, root: str) -> None:
    migrated(tmp_path, layout_yaml=layout(machine))
    assert load_site(tmp_path / "new").site.settings.docker_data_root == root


def test_kubernetes_configuration_is_accounted_for(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    kubernetes = (
        "kubernetes:\n  cluster-dns: 10.0.0.5\n  load-balance-ip: 10.0.0.1\n  service-cluster-ip-range: 10.254.0.0/16\n"
        "  docker-registry: gcr.io/x\n  etcd-data-path: /var/etcd\n  storage-backend: etcd3\n"
    )
    files = {
        "layout.yaml": V0,
        "kubernetes-configuration.yaml": kubernetes,
        "k8s-role-definition.yaml": "k8s-role: 1\n",
    }
    done = migrate(written(tmp_path, files), tmp_path / "new")
    outcomes = {entry.path: entry.outcome for entry in done.account if entry.file == "kubernetes-configuration.yaml"}
    assert Counter(outcomes.values()) == {Fate.KEPT: 2, Fate.DROPPED: 5}
    assert said(done, "k8s-role-definition.yaml", "") == snapshot


def test_every_other_file_is_named(tmp_path: Path) -> None:
    old = written(tmp_path, {"layout.yaml": V0, "hosts.yml": "x", "notes.txt": "x", "layout.yaml.template": "x"})
    (old / "folder").mkdir()
    (old / "gone").symlink_to("nowhere")
    done = migrate(old, tmp_path / "new")
    assert {entry.file: entry.outcome for entry in done.account if not entry.path} == {
        "layout.yaml": Fate.KEPT,
        **dict.fromkeys(("hosts.yml", "notes.txt", "layout.yaml.template", "folder", "gone"), Fate.DROPPED),
    }


def test_quick_start_file(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    text = "machines: [10.0.0.1, 10.0.0.2]\nssh-username: u\nssh-password: p\nssh-port: 2222\ndns: 8.8.8.8\n"
    done = migrated(tmp_path, quick__start_yaml=text + "service-cluster-ip-range: 10.254.0.0/16\n")
    site = load_site(tmp_path / "new").site
    assert [(m.hostip, m.control_plane, m.worker, m.ssh.port) for m in site.machines] == [
        ("10.0.0.1", True, False, 2222),
        ("10.0.0.2", False, True, 2222),
    ]
    assert (site.settings.user, site.settings.service_cidr) == ("u", "10.254.0.0/16")
    assert said(done, "quick-start.yaml", "dns") == snapshot
    assert done.origin == "OpenPAI v0.x (quick-start.yaml)"


def test_generated_layout_of_v1_is_called_so(tmp_path: Path) -> None:
    text = V0.replace("k8s-role: master, username: u, password: p", 'pai-master: "true", nodename: a').replace(
        "k8s-role: worker, username: u, password: p", 'pai-worker: "true", nodename: b'
    )
    done = migrated(tmp_path, layout_yaml=text)
    assert done.origin == "OpenPAI v1.0-v1.4 (layout.yaml)"
    assert load_site(tmp_path / "new").site.settings.docker_data_root == "/mnt/docker"


def test_masters_that_only_held_etcd_are_told(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    lists = {**LISTS, "master.csv": "m1,10.0.0.1\nm2,10.0.0.3\nm3,10.0.0.4\n"}
    done = migrate(written(tmp_path, lists), tmp_path / "new")
    assert said(done, "master.csv", "machine[1]") == snapshot


def test_variables_of_passwords_do_not_collide(tmp_path: Path) -> None:
    text = (
        V0.replace("hostname: a", "hostname: a.b")
        .replace("hostname: b", "hostname: a-b")
        .replace("password: p", "password: q", 1)
    )
    done = migrated(
        tmp_path, layout_yaml=text + "  - {hostname: a_b, hostip: 10.0.0.3, machine-type: BOX, password: r}\n"
    )
    names = [machine["ssh"]["password-from"]["env"] for machine in new_layout(done)["machine-list"] if "ssh" in machine]
    assert len(names) == len(set(names)) == 2


def test_lists_are_regular_files_of_a_size(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    old = written(tmp_path, LISTS)
    (old / "worker.csv").unlink()
    os.mkfifo(old / "worker.csv")
    with raises("site-invalid", kind=SiteInvalid) as caught:
        migrate(old, tmp_path / "new")
    assert caught.value.details == snapshot


def test_one_name_with_two_addresses_is_no_silent_choice(tmp_path: Path) -> None:
    done = migrate(written(tmp_path, {**LISTS, "worker.csv": "w1,10.0.0.2\nw1,10.0.0.3\n"}), tmp_path / "new")
    assert [machine["hostip"] for machine in new_layout(done)["machine-list"]] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert [problem.code for problem in done.reading.problems if problem.is_error] == ["site.duplicate-hostname"]


def test_a_control_plane_keeps_its_address(tmp_path: Path) -> None:
    done = migrate(written(tmp_path, {**LISTS, "worker.csv": "m1,10.0.0.7\n"}), tmp_path / "new")
    first = new_layout(done)["machine-list"][0]
    assert (first["hostip"], first.get("pai-master")) == ("10.0.0.1", "true")


def test_quotes_are_no_part_of_a_cell(tmp_path: Path) -> None:
    migrate(written(tmp_path, {**LISTS, "worker.csv": '"w1","10.0.0.2"\n"w2", "10.0.0.3"\n'}), tmp_path / "new")
    assert [m.hostname for m in load_site(tmp_path / "new").site.workers] == ["w1", "w2"]


def test_services_under_their_other_name(tmp_path: Path) -> None:
    done = migrated(tmp_path, layout_yaml=V0, services__configuration_yml="grafana: {port: 1}\n")
    assert [path.name for path in done.files] == [
        "layout.yaml",
        "config.yaml",
        "services-configuration.yaml",
        "migrated.txt",
    ]


def test_the_folder_below_is_named(tmp_path: Path) -> None:
    (tmp_path / "cluster-cfg").mkdir()
    (tmp_path / "cluster-cfg" / "layout.yaml").write_text(V0)
    with raises("migrate-no-old-site") as caught:
        migrate(tmp_path, tmp_path / "new")
    assert caught.value.remedy == f"use {tmp_path / 'cluster-cfg'}"


def test_the_account_in_text_json_and_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    old = str(written(tmp_path, {"layout.yaml": V0}))
    assert run(["migrate", old, "--site", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out == snapshot
    assert run(["migrate", old, "--site", str(tmp_path / "b"), "--account"]) == 0
    line = "layout.yaml:4: machine-list[0].username: now config.yaml: user"
    assert f"  {line}\n" in capsys.readouterr().out
    assert f"{line}\n" in (tmp_path / "b" / "migrated.txt").read_text()
    assert run(["migrate", old, "--site", str(tmp_path / "c"), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"] == {"carried over": 13, "replaced": 3, "dropped": 0}
    assert {
        "file": "layout.yaml", "line": 4, "path": "machine-list[0].username", "outcome": "carried over",
        "text": "config.yaml: user",
    } in report["account"]  # fmt: skip


def test_a_book_drops_what_nobody_took() -> None:
    document = Document("x")
    parse_document("a: 1\nb: {c: 2, d: [3, {}]}\ne:\n", document)
    book = Book("x")
    book.open(document)
    book.keep(("b",), "there")
    book.drop(("b", "c"), "too late")
    assert [(entry.path, entry.outcome) for entry in book.close()] == [
        ("a", Fate.DROPPED),
        ("b.c", Fate.KEPT),
        ("b.d[0]", Fate.KEPT),
        ("b.d[1]", Fate.KEPT),
        ("e", Fate.DROPPED),
    ]


# old sites made of data, so that the test knows every leaf of them without reading YAML
WORDS = st.sampled_from(
    [
        "a",
        "true",
        "false",
        "22",
        "2222",
        "0",
        "x y",
        "ü",
        "{{ x }}",
        "10.0.0.1",
        "",
        "null",
        "gpuk80",
        "BOX",
        "a: b",
        "#",
    ]
)
OLD_KEYS = [
    "hostname", "hostip", "machine-type", "machinetype", "username", "password", "sshport", "ssh-port", "keyfile-path",
    "ssh-keyfile-path", "ssh-secret-name", "docker-data", "nodename", "k8s-role", "etcdid", "zkid", "dashboard",
    "pai-master", "pai-worker", "pai-storage", "rdma", "watchdog", "mem", "os", "gpu", "cpu", "computing-device",
]  # fmt: skip
VALUES = st.recursive(
    WORDS | st.none(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "count", "vcore", "z"]), inner, max_size=3)
    ),
    max_leaves=3,
)
MACHINES = st.dictionaries(st.sampled_from(OLD_KEYS), WORDS | VALUES, max_size=8).map(
    lambda machine: {"hostname": "m", "username": "u", **machine}
)
LAYOUTS = st.fixed_dictionaries(
    {
        "machine-list": st.lists(MACHINES | VALUES, max_size=3).map(
            lambda found: [{"hostname": "a", "k8s-role": "master"}, *found]
        )
    },
    optional={
        "machine-sku": st.dictionaries(
            WORDS.filter(bool), st.dictionaries(st.sampled_from(OLD_KEYS), VALUES, max_size=5), max_size=2
        )
        | VALUES,
        "default-machine-properties": st.dictionaries(st.sampled_from(OLD_KEYS), VALUES, max_size=4) | VALUES,
        "kubernetes": VALUES,
        "other": VALUES,
    },
)
CONFIGS = st.dictionaries(
    st.sampled_from(["user", "password", "docker_data_root", "service_cidr", "gpu_type", "branch_name", "mine",
                     "worker_default_docker_runtime", "openpai_kubespray_extra_var"]),
    VALUES, max_size=5,
)  # fmt: skip
KUBERNETES = st.fixed_dictionaries(
    {},
    optional={
        "kubernetes": st.dictionaries(st.sampled_from(["cluster-dns", "service-cluster-ip-range", "q"]), VALUES)
        | VALUES
    },
)


def leaves_of(value: object, path: YamlPath = ()) -> list[str]:
    """Every leaf of the data, as the account names it."""
    if isinstance(value, dict) and (value or not path):
        return [leaf for key, inner in value.items() for leaf in leaves_of(inner, (*path, key))]
    if isinstance(value, list) and value:
        return [leaf for index, inner in enumerate(value) for leaf in leaves_of(inner, (*path, index))]
    return [dotted(path)]


@settings(
    max_examples=int(os.environ.get("PAI_FUZZ_EXAMPLES", "100")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(
    layouts=st.dictionaries(
        st.sampled_from(["layout.yaml", "layout.yml", "cluster-configuration.yaml"]), LAYOUTS, min_size=1
    ),
    configs=st.dictionaries(st.sampled_from(["config", "config.yml", "config.yaml"]), CONFIGS, max_size=2),
    kubernetes=KUBERNETES,
    rows=st.lists(st.tuples(st.sampled_from(["a", "b", "m"]), st.sampled_from(["10.0.0.1", "10.0.0.2"])), max_size=3),
    services=st.none()
    | st.dictionaries(st.sampled_from(["grafana", "mine"]), st.dictionaries(st.sampled_from(["port", "z"]), VALUES)),
)
def test_the_account_is_the_whole_input(
    layouts: dict[str, Any], configs: dict[str, Any], kubernetes: Any, rows: list[tuple[str, str]], services: Any
) -> None:
    files: dict[str, Any] = {**layouts, **configs, "kubernetes-configuration.yaml": kubernetes}
    files |= {} if services is None else {"services-configuration.yaml": services}
    with tempfile.TemporaryDirectory() as name:
        old, new = Path(name) / "old", Path(name) / "new"
        old.mkdir()
        for file, content in files.items():
            (old / file).write_text(json.dumps(content))
        (old / "worker.csv").write_text("".join(f"{','.join(row)}\n" for row in rows))
        (old / "unknown").write_text("")
        try:
            done = migrate(old, new)
        except SiteInvalid:  # an empty file, say; what is wrong is told, and nothing is written
            assert not new.exists()
            return
        _is_whole(done, files, rows)
        _is_true(done, files, new)


def _is_whole(done: Migration, files: dict[str, Any], rows: list[tuple[str, str]]) -> None:
    told = Counter((entry.file, entry.path) for entry in done.account)
    expected = Counter((file, path) for file, content in files.items() for path in leaves_of(content))
    expected += Counter(("worker.csv", f"machine[{number}]") for number in range(len(rows)))
    expected += Counter((file, "") for file in (*files, "worker.csv", "unknown"))
    assert told == expected


def _is_true(done: Migration, files: dict[str, Any], new: Path) -> None:
    """What is said to be carried over stands where the account says, with the same value."""
    sources = {name: read_document(new / name) for name in ("layout.yaml", "config.yaml")}
    old = {name: Document(name) for name in files}
    for name, document in old.items():
        parse_document(json.dumps(files[name]), document)
    for entry in done.account:
        target, _, place = entry.text.partition(": ")
        if entry.outcome is not Fate.KEPT or not entry.path or target not in sources or entry.file not in old:
            continue
        value = _found(old[entry.file], entry.path)
        there = _found(sources[target], place or entry.path)
        assert (str(there).strip() if isinstance(there, Text) else there) == (
            str(value).strip() if isinstance(value, Text) else value
        ), entry


def _found(document: Document, wanted: str) -> object:
    """The value that a dotted path names."""
    return next((document.at(path) for path in _paths(document) if dotted(path) == wanted), None)


def _paths(document: Document) -> list[YamlPath]:
    def below(value: object, path: YamlPath) -> list[YamlPath]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, Items) else ()
        return [path, *(found for key, item in inner for found in below(item, (*path, key)))]

    return below(document.content, ())
