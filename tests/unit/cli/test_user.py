"""The verbs of users from argv to exit code, on a cluster in memory."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster.client import Token
from pai_install.errors import ExitCode
from pai_install.json_schema import schema_of
from pai_install.kube.model import Ref
from pai_install.report.users import UsersReport
from pai_install.users.credentials import Credential, CredentialKind, credential_of, fingerprint, secret_of
from pai_install.users.objects import account, expiring, mark, membership
from tests.unit.cli.stub_environment import World, run, write_site
from tests.unit.cluster.fake import FakeCluster, merged
from tests.unit.operations.test_users import ALICE, PLACES, SERVICES

TOKEN = "planted-token-4711"
CLUSTER = {"server": "https://10.0.0.1:6443", "certificate-authority-data": "QQ=="}
LATER = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text(SERVICES)
    (folder / ".pai").mkdir(mode=0o700)
    kubeconfig = {"clusters": [{"name": "kubernetes", "cluster": CLUSTER}]}
    (folder / ".pai" / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def world(in_world: Any) -> World:
    api = FakeCluster.of(*PLACES, *ALICE)
    api.token = Token(TOKEN, LATER.isoformat().replace("+00:00", "Z"))
    made: World = in_world(World(api=api))
    return made


def marks(world: World) -> set[str]:
    return {ref.name for ref in world.api.objects if ref.kind == "secret"}


def test_a_user_is_added_listed_and_removed(site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    words = ["user", "add", "bob", "--group", "speech,Vision", "--site", str(site), "--yes"]
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert Ref("rolebinding", "pai-user-bob", "speech") in world.api.objects
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert run(["user", "list", "--site", str(site)]) == ExitCode.OK
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2] == ["bob", "Vision,", "speech", "no", "no", "kubeconfig", "yet", "0"]
    assert run(["user", "remove", "bob", "--site", str(site), "--yes"]) == ExitCode.OK
    assert not [ref for ref in world.api.objects if "bob" in ref.name]
    assert world.ansible.requests == [], "the API is enough"


def test_a_file_of_users_is_imported_once(site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion) -> None:
    Path("users.csv").write_text("name,groups\nalice,Vision speech\nbob,speech\n")
    words = ["user", "import", "users.csv", "--site", str(site), "--yes"]
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    bound = {(ref.name, ref.namespace) for ref in world.api.objects if ref.kind == "rolebinding"}
    assert bound == {("pai-user-alice", "vision"), ("pai-user-alice", "speech"), ("pai-user-bob", "speech")}
    assert run(words) == ExitCode.OK
    assert capsys.readouterr().err == snapshot


def test_an_import_with_unknown_groups_changes_nothing(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    before = dict(world.api.objects)
    Path("users.csv").write_text("name,groups\nbob,speech\ncarol,audio vision\n")
    assert run(["user", "import", "users.csv", "--site", str(site), "--yes"]) == ExitCode.USAGE
    assert capsys.readouterr().err == snapshot
    assert world.api.objects == before


def test_a_kubeconfig_is_a_private_file_and_its_token_is_nowhere_else(site: Path, world: World, capsys: Any) -> None:
    assert run(["user", "kubeconfig", "alice", "--days", "30", "--site", str(site)]) == ExitCode.OK
    path = Path("alice.kubeconfig")
    assert path.stat().st_mode & 0o777 == 0o600
    found = yaml.safe_load(path.read_text())
    assert found["users"] == [{"name": "alice", "user": {"token": TOKEN}}]
    assert (found["clusters"][0]["cluster"], found["current-context"]) == (CLUSTER, "vision")
    out, err = capsys.readouterr()
    assert f"until {LATER:%Y-%m-%dT%H:%M:%SZ}; contexts vision" in out
    assert TOKEN not in out + err + str(world.api.calls)
    (asked,) = [subject for name, subject in world.api.calls if name == "request_token"]
    assert asked[:2] == (Ref("serviceaccount", "alice", "pai-users"), 30 * 86400)
    assert marks(world) == {asked[2]}, "the mark that was never finished is gone"
    assert run(["user", "list", "--format", "json", "--site", str(site)]) == ExitCode.OK
    listed = json.loads(capsys.readouterr().out)
    jsonschema.validate(listed, schema_of(UsersReport))
    assert listed["users"][0]["until"] == f"{LATER:%Y-%m-%dT%H:%M:%SZ}"


def test_replacing_ends_the_earlier_ones(site: Path, world: World, capsys: Any) -> None:
    for name, until in (("alice.old", LATER), ("alice.past", LATER - timedelta(days=99))):
        lasting = merged(mark("alice", "1", name), expiring(until))
        world.api.objects[Ref("secret", name, "pai-users")] = lasting
    words = ["user", "kubeconfig", "alice", "--site", str(site), "--output"]
    assert run([*words, "one"]) == ExitCode.OK
    assert "alice.old" in marks(world)
    assert "alice.past" not in marks(world)
    assert run([*words, "two", "--replace"]) == ExitCode.OK
    assert "2 earlier kubeconfigs" in capsys.readouterr().out
    assert len(marks(world)) == 1


@pytest.mark.parametrize("name", ["one", "dangling"])
def test_no_file_is_replaced(site: Path, world: World, name: str, capsys: Any) -> None:
    Path("one").write_text("another cluster's")
    Path("dangling").symlink_to("nowhere")
    assert run(["user", "kubeconfig", "alice", "--site", str(site), "--output", name]) == ExitCode.USAGE
    assert "code: file-exists" in capsys.readouterr().err
    assert world.api.calls == []


def test_a_refused_token_leaves_no_mark_and_no_file(site: Path, world: World) -> None:
    world.api.token = None
    before = marks(world)
    assert run(["user", "kubeconfig", "alice", "--site", str(site)]) != ExitCode.OK
    assert marks(world) == before
    assert not Path("alice.kubeconfig").exists()


def test_a_full_disk_leaves_no_mark(site: Path, world: World) -> None:
    before = marks(world)
    assert run(["user", "kubeconfig", "alice", "--site", str(site), "--output", "/proc/none/file"]) != ExitCode.OK
    assert marks(world) == before


def test_who_is_no_user_or_in_no_group_gets_none(site: Path, world: World, capsys: Any) -> None:
    assert run(["user", "kubeconfig", "alise", "--site", str(site)]) == ExitCode.USAGE
    assert "code: unknown-user" in capsys.readouterr().err
    world.api.objects[Ref("serviceaccount", "eve", "pai-users")] = account("eve")
    assert run(["user", "kubeconfig", "eve", "--site", str(site)]) == ExitCode.USAGE
    assert "code: user-without-group" in capsys.readouterr().err


def test_before_the_first_apply_there_is_no_kubeconfig(site: Path, world: World, capsys: Any) -> None:
    (site / ".pai" / "kubeconfig").unlink()
    assert run(["user", "kubeconfig", "alice", "--site", str(site)]) == ExitCode.USAGE
    assert "code: kubeconfig-missing" in capsys.readouterr().err
    assert world.api.calls == []


def test_another_server_and_all_groups(site: Path, world: World) -> None:
    more = membership("alice", "speech", "speech")
    world.api.objects[Ref("rolebinding", "pai-user-alice", "speech")] = more
    words = ["user", "kubeconfig", "alice", "--site", str(site), "--server", "https://api.example.com:6443"]
    assert run(words) == ExitCode.OK
    found = yaml.safe_load(Path("alice.kubeconfig").read_text())
    assert found["clusters"][0]["cluster"]["server"] == "https://api.example.com:6443"
    assert [one["context"]["namespace"] for one in found["contexts"]] == ["speech", "vision"]


def test_a_cluster_without_users_says_how_to_add_one(
    site: Path, in_world: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(World(api=FakeCluster.of(*PLACES)))
    assert run(["user", "list", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot


def test_a_link_for_a_password_ends_the_one_before_and_only_its_fingerprint_is_kept(
    site: Path, world: World, capsys: Any, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["user", "password", "alice", "--site", str(site)]
    assert run(words) == ExitCode.USAGE, "the site has no scheduler, and so no console"
    assert "code: console-missing" in capsys.readouterr().err
    assert run([*words, "--server", "https://pai.example.org/"]) == ExitCode.OK
    first = capsys.readouterr().out
    assert run([*words, "--server", "https://pai.example.org", "--hours", "2"]) == ExitCode.OK
    second = capsys.readouterr().out
    secret = second.splitlines()[0].rpartition("/")[2]
    assert second.startswith("https://pai.example.org/password/")
    assert len(secret) == 32
    assert re.sub(r"\d{4}-\S+", "TIME", second.replace(secret, "SECRET")) == snapshot
    links = [item for ref, item in world.api.objects.items() if ref.name.startswith("link.")]
    (link,) = links
    assert first.splitlines()[0] != second.splitlines()[0]
    assert secret not in json.dumps(link)
    assert link["metadata"]["name"] == f"link.{fingerprint(secret)}"
    kept = [Credential(kind, "one", "alice", "uid") for kind in CredentialKind if kind is not CredentialKind.PASSWORD]
    for one in kept:
        world.api.objects[one.ref] = secret_of(one)

    def thief(seconds: float) -> None:
        """Uses a replica of the console that does not know it yet."""
        for kind, data in ((CredentialKind.TOKEN, {}), (CredentialKind.PASSWORD, {"hash": "new", "since": "now"})):
            made = Credential(kind, "alice", "alice", "uid", data=data)
            if seconds:
                world.api.objects[made.ref] = secret_of(made)

    monkeypatch.setattr("pai_install.app.users.time.sleep", thief)
    assert run([*words, "--server", "https://pai.example.org", "--replace"]) == ExitCode.OK
    assert re.sub(r"\d{4}-\S+|password/\S+", "...", capsys.readouterr().out) == snapshot(name="replaced")
    assert Ref("secret", "token.alice", "pai-console") not in world.api.objects
    names = {ref.name for ref in world.api.objects if ref.name.endswith(".one")}
    assert names == {"first.one", "profile.one"}, "sessions, tokens, and links are over"
    password = credential_of(world.api.objects[Ref("secret", "password.alice", "pai-console")])
    assert password is not None
    assert password.data == {"hash": "revoked", "since": ""}
    assert run(["user", "password", "alise", "--site", str(site), "--server", "https://x"]) == ExitCode.USAGE
