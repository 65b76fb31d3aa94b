"""`pai-install storage` from argv to exit code: files edited in place, the cluster in memory."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.schema import SCHEMAS
from pai_install.cluster.client import NoClusterError
from pai_install.cluster.read import mounts
from pai_install.errors import ExitCode
from pai_install.run.lock import site_lock
from pai_install.run.state import open_state
from pai_install.site.load import SERVICES, load_site
from pai_install.storage.compile import grants_of
from pai_install.storage.objects import volumes
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster

SITE = """\
# ours
storages:
  - name: data   # the big one
    type: nfs
    server: nas
    path: /data
    description: Data sets of all groups, and the models that they trained, with their cards
  - {name: homes, type: smb, server: nas, share-name: homes, username: u, password: hunter22-share, share: false}

authentication:
  group-manager:
    admin-group: {groupname: admins, extension: {acls: {admin: true}}}
    default-group: {groupname: default}
    grouplist:
      - groupname: vision
        extension:
          acls:
            storageConfigs: ["data"]   # keep
      - groupname: Team_B
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / SERVICES).write_text(SITE)
    return folder


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World())
    return made


def text(site: Path) -> str:
    return (site / SERVICES).read_text()


def granted(site: Path) -> list[tuple[str, str]]:
    return [(grant.storage.name, grant.group) for grant in grants_of(load_site(site).site)]


def test_list_needs_no_cluster(site: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    assert run(["storage", "list", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert run(["storage", "list", "--site", str(site), "--format", "json"]) == ExitCode.OK
    report = json.loads(capsys.readouterr().out)
    jsonschema.validate(report, SCHEMAS["storages"]())
    assert report["storages"][0]["groups"] == ["vision"]
    assert report["storages"][0]["description"].endswith("with their cards"), "whole"
    (site / SERVICES).unlink()
    assert run(["storage", "list", "--site", str(site)]) == ExitCode.OK
    assert "pai-install storage add" in capsys.readouterr().out


def test_show_asks_the_cluster_and_shows_no_secret(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    objects = [dict(item) for item in volumes(grants_of(load_site(site).site))]
    for item in objects:
        item["status"] = {"phase": "Bound"}
    pod = {
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "vision"},
        "spec": {"nodeName": "one", "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}]},
        "status": {"phase": "Running"},
    }
    in_world(World(api=FakeCluster.of(*objects, pod)))
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    out = capsys.readouterr().out
    assert "data: nas:/data\n" in out
    assert out == snapshot
    assert run(["storage", "show", "homes", "--site", str(site), "--format", "json"]) == ExitCode.OK
    shown = capsys.readouterr().out
    jsonschema.validate(json.loads(shown), SCHEMAS["storage"]())
    assert json.loads(shown)["secrets"] == ["password"]
    assert "hunter22" not in shown


def test_show_says_what_the_site_says_where_no_cluster_answers(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    def refuse(*_: object) -> None:
        raise NoClusterError({"master": "connection refused"})

    world.api.list = refuse  # type: ignore[method-assign,assignment]
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.UNREACHABLE
    out = capsys.readouterr().out
    assert "  server: nas\n" in out
    assert out == snapshot


def test_show_reads_no_secret(site: Path, world: World) -> None:
    mounts(world.api, ["vision", "vision"], "pai-install/storage=data")
    kinds = {kind for _, selects in world.api.calls for select in selects for kind in select.kinds}
    assert kinds == {"persistentvolumes", "persistentvolumeclaims", "pods"}


def test_grant_shows_and_writes_the_difference_and_says_what_is_next(
    site: Path, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    words = ["storage", "grant", "homes", "--group", "vision", "--group", "Team_B", "--site", str(site)]
    (site / SERVICES).chmod(0o640)
    assert run([*words, "--check"]) == ExitCode.OK
    assert text(site) == SITE
    checked = capsys.readouterr().out
    assert run(words) == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == checked
    assert '-            storageConfigs: ["data"]   # keep\n' in out
    assert out == snapshot
    assert "hunter22" not in out
    assert err == snapshot
    assert granted(site) == [("data", "vision"), ("homes", "vision"), ("homes", "Team_B")]
    assert stat.S_IMODE((site / SERVICES).stat().st_mode) == 0o640
    assert run(words) == ExitCode.OK
    out, err = capsys.readouterr()
    assert (out, "vision has homes already\n" in err, err.endswith("nothing to do\n")) == ("", True, True)
    assert run([*words[:1], "revoke", *words[2:]]) == ExitCode.OK
    assert text(site) == SITE


def test_groups_of_their_own_kind(site: Path) -> None:
    assert run(["storage", "grant", "data", "--group", "admins,default", "--site", str(site)]) == ExitCode.OK
    assert granted(site) == [("data", "admins"), ("data", "default"), ("data", "vision")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["grant", "dat", "--group", "vision"], "did you mean data?"),
        (["grant", "data", "--group", "visoin"], "did you mean vision?"),
        (["revoke", "dat", "--group", "vision"], "did you mean data?"),
        (["remove", "dat"], "did you mean data?"),
        (["show", "dat"], "did you mean data?"),
        (["add", "x", "--type", "nsf"], "did you mean nfs?"),
        (["add", "x", "--type", "nfs", "--path", "/x"], "type nfs needs --server"),
        (["add", "x", "--type", "smb", "--server", "s", "--share-name", "s", "--username", "u"], "--password-env or"),
        (["add", "x", "--type", "hostPath", "--path", "/x", "--server", "s"], "type hostPath has no --server"),
        (["add", "data", "--type", "hostPath", "--path", "/x"], "code: storage-exists"),
    ],
)
def test_wrong_words_are_usage_errors(site: Path, words: list[str], said: str, capsys: Any) -> None:
    assert run(["storage", *words, "--site", str(site)]) == ExitCode.USAGE
    assert said in capsys.readouterr().err
    assert text(site) == SITE


def test_a_site_without_any_says_how_to_begin(site: Path, capsys: Any) -> None:
    (site / SERVICES).unlink()
    assert run(["storage", "grant", "data", "--group", "vision", "--site", str(site)]) == ExitCode.USAGE
    assert "code: unknown-storage" in capsys.readouterr().err
    words = ["storage", "add", "data", "--type", "nfs", "--server", "nas", "--path", "/data", "--site", str(site)]
    assert run(words) == ExitCode.OK
    assert run(["storage", "grant", "data", "--group", "vision", "--site", str(site)]) == ExitCode.USAGE
    assert "code: unknown-group" in capsys.readouterr().err


def test_add_writes_every_key_and_no_secret(site: Path, capsys: Any, snapshot: SnapshotAssertion) -> None:
    words = ["storage", "add", "scans", "--type", "smb", "--server", "nas", "--share-name", "scans", "--username", "u"]
    words += ["--password-env", "SCANS", "--mount-options", "vers=3.0,hard", "--no-share", "--capacity", "5Ti"]
    assert run([*words, "--site", str(site)]) == ExitCode.OK
    added = (
        "  - name: scans\n    type: smb\n    server: nas\n    share-name: scans\n    username: u\n"
        "    password: {env: SCANS}\n    capacity: 5Ti\n    mount-options: [vers=3.0, hard]\n    share: false\n"
    )
    assert text(site) == SITE.replace("\nauthentication", f"{added}\nauthentication")
    assert capsys.readouterr().err == snapshot
    assert run([*words, "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert run(["storage", "remove", "scans", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert text(site) == SITE


def test_what_would_make_the_site_invalid_is_not_written(site: Path, capsys: Any) -> None:
    words = ["storage", "add", "disk", "--type", "local", "--path", "/disk", "--machine", "noe", "--site", str(site)]
    assert run(words) == ExitCode.SITE_INVALID
    err = capsys.readouterr().err
    assert "code: edited-site-invalid" in err
    assert text(site) == SITE


def test_a_file_is_made_where_there_is_none(site: Path) -> None:
    (site / SERVICES).unlink()
    words = ["storage", "add", "data", "--type", "nfs", "--server", "nas", "--path", "/data", "--read-only"]
    assert run([*words, "--site", str(site)]) == ExitCode.OK
    assert text(site).endswith("path: /data\n    read-only: true\n")
    assert stat.S_IMODE((site / SERVICES).stat().st_mode) == 0o600


def test_a_storage_that_is_granted_stays(site: Path, capsys: Any) -> None:
    assert run(["storage", "remove", "data", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert "code: storage-granted" in capsys.readouterr().err
    assert text(site) == SITE
    assert run(["storage", "remove", "data", "--revoke", "--site", str(site)]) == ExitCode.OK
    assert granted(site) == []
    assert "storageConfigs: []   # keep" in text(site)


def test_lines_that_no_command_edits_are_named(site: Path, capsys: Any) -> None:
    (site / SERVICES).write_text(SITE.replace("groupname: default}", "groupname: default, <<: &x {description: d}}"))
    assert run(["storage", "grant", "data", "--group", "default", "--site", str(site)]) == ExitCode.OK
    aliased = text(site).replace("      - groupname: Team_B", "      - {groupname: Team_B, extension: *e}")
    aliased = aliased.replace("extension:\n", "extension: &e\n", 1)
    (site / SERVICES).write_text(aliased)
    capsys.readouterr()
    assert run(["storage", "grant", "homes", "--group", "vision", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert f"{SERVICES}:" in capsys.readouterr().err
    assert text(site) == aliased


def test_a_link_stays_a_link_and_a_run_is_waited_for(site: Path, tmp_path: Path) -> None:
    (site / SERVICES).rename(tmp_path / "kept.yaml")
    (site / SERVICES).symlink_to(tmp_path / "kept.yaml")
    words = ["storage", "grant", "homes", "--group", "vision", "--site", str(site)]
    with site_lock(open_state(site).path, "apply"):
        assert run(words) == ExitCode.PREFLIGHT_FAILED
    assert text(site) == SITE
    assert run(words) == ExitCode.OK
    assert (site / SERVICES).is_symlink()
    assert "homes" in (tmp_path / "kept.yaml").read_text().splitlines()[17]


def test_apply_follows_where_it_is_asked_for(site: Path, world: World, capsys: Any) -> None:
    words = ["storage", "grant", "homes", "--group", "vision", "--site", str(site), "--apply"]
    assert run(words) == ExitCode.USAGE, "no one can be asked"
    assert text(site) == SITE
    assert run([*words, "--yes"]) == ExitCode.OK
    assert any("observed" in asked for asked in world.asked)
    assert ("homes", "vision") in granted(site)
