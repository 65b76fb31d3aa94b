"""`pai-install storage rotate` from argv to exit code, on machines in memory; killed at every door."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.app.rotations import storage_stages
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.site.load import SERVICES, load_site
from pai_install.site.rotations import read_rotations, rotations_file
from pai_install.storage.compile import current_grants
from pai_install.storage.rotation import stage_of
from tests.suites import sampled
from tests.unit.cli.storage_cluster import Killed, Machines, pod
from tests.unit.cli.stub_environment import World, run, write_site

SITE = """\
# ours
storages:
  - name: data   # the big one
    type: nfs
    server: nas
    path: /old   # until spring
  - {name: idle, type: nfs, server: nas, path: /idle}
authentication:
  group-manager:
    grouplist:
      - {groupname: vision, extension: {acls: {storageConfigs: [data]}}}
      - {groupname: Speech, extension: {acls: {storageConfigs: [data]}}}
"""
NEW = SITE.replace("path: /old ", "path: /new ")
TRAIN = Ref("pod", "train", "vision")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / SERVICES).write_text(SITE)
    return folder


@pytest.fixture
def machines(site: Path, in_world: Any, monkeypatch: pytest.MonkeyPatch) -> Machines:
    world: World = in_world(World())
    made = Machines(script=world.script, site=site, api=world.api, folders={"/old", "/new"})
    world.ansible = made
    made.apply()
    monkeypatch.setattr("pai_install.operations.storage_rotate.make_plan", made.plan)
    for name in ("save_rotations", "write_services"):
        monkeypatch.setattr(storage_stages, name, behind_a_door(made, getattr(storage_stages, name)))
    return made


def ready(*names: str) -> list[dict[str, Any]]:
    """Nodes."""
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return [{"kind": "Node", "metadata": {"name": name}, "spec": {}, "status": status} for name in names]


@pytest.fixture
def holding(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> Machines:
    """Workers that copy, and something to copy."""
    machines.api.objects.update({Ref("node", it["metadata"]["name"]): it for it in ready("one", "two")})
    machines.data = {"/old": {"a": "1", "b": "2"}}
    monkeypatch.setattr("pai_install.app.rotations.storage_copy.time.sleep", lambda _seconds: None)
    return machines


def stand_ins(machines: Machines) -> list[str]:
    return [ref.name for ref in machines.api.objects if "pai-from" in ref.name or "pai-to" in ref.name]


def behind_a_door(machines: Machines, work: Any) -> Any:
    def done(*words: Any) -> None:
        machines.door()
        work(*words)
        machines.door()

    return done


def rotate(site: Path, *words: str) -> int:
    return run(["storage", "rotate", "data", "--site", str(site), "--yes", *words])


def text(site: Path) -> str:
    return (site / SERVICES).read_text()


def claims(machines: Machines) -> set[str]:
    return {f"{ref.namespace}/{ref.name}" for ref in machines.api.objects if ref.kind == "persistentvolumeclaim"}


def test_a_storage_that_no_pod_uses_is_rotated_at_once(
    site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert rotate(site, "--path", "/new") == ExitCode.OK
    out, err = capsys.readouterr()
    assert out == snapshot
    assert err == snapshot
    assert "was interrupted" not in err
    assert err.count("admin-group is missing") == 1, "what the site's files warn of is told once, not at each stage"
    assert text(site) == NEW
    assert claims(machines) == {"vision/data-g2", "speech/data-g2"}
    assert machines.place("vision", "data-g2") == "/new"
    assert machines.settled()
    assert stat.S_IMODE(rotations_file(site).stat().st_mode) == 0o600
    assert run(["storage", "list", "--site", str(site), "--format", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["storages"][0]["claim"] == "data-g2"
    assert rotate(site, "--path", "/new") == ExitCode.OK
    assert capsys.readouterr().err == snapshot


def test_the_old_goes_when_its_last_pod_ends(
    site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    assert rotate(site, "--path", "/new") == ExitCode.OK
    err = capsys.readouterr().err
    assert err == snapshot
    assert claims(machines) == {"vision/data", "speech/data", "vision/data-g2", "speech/data-g2"}
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert shown == snapshot
    assert run(["status", "--offline", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().err == snapshot
    assert rotate(site, "--finish") == ExitCode.OK
    assert "vision/data" in claims(machines)
    machines.api.objects[TRAIN]["status"]["phase"] = "Succeeded"
    assert rotate(site, "--finish") == ExitCode.OK
    assert claims(machines) == {"vision/data-g2", "speech/data-g2"}
    assert rotate(site, "--finish") == ExitCode.OK
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    assert "--finish" not in capsys.readouterr().out


def test_a_place_that_no_worker_can_mount_changes_nothing(
    site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    machines.folders.remove("/new")
    before = dict(machines.api.objects)
    assert rotate(site, "--path", "/new") == ExitCode.VERIFICATION_FAILED
    assert text(site) == SITE
    assert not rotations_file(site).exists()
    assert machines.api.objects == before
    assert capsys.readouterr().err == snapshot


def test_check_only_tells(site: Path, machines: Machines, capsys: Any) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    before = dict(machines.api.objects)
    assert run(["storage", "rotate", "data", "--site", str(site), "--path", "/new", "--check"]) == ExitCode.OK
    out, err = capsys.readouterr()
    assert "+    path: /new" in out
    assert "vision/train" in err
    assert (text(site), machines.api.objects, machines.requests) == (SITE, before, [])
    assert not rotations_file(site).exists()


def test_what_works_on_no_worker_in_the_end_is_taken_back(site: Path, machines: Machines, monkeypatch: Any) -> None:
    good = machines.tried

    def only_the_trial(words: Any) -> Any:
        trial = words["storage_grants"][0]["claim"].startswith("pai-try-")
        machines.folders = {"/old", "/new"} if trial else {"/old"}
        return good(words)

    monkeypatch.setattr(machines, "tried", only_the_trial)
    assert rotate(site, "--path", "/new") == ExitCode.VERIFICATION_FAILED
    assert text(site) == SITE
    assert claims(machines) == {"vision/data", "speech/data"}
    assert machines.settled()
    monkeypatch.setattr(machines, "tried", good)
    machines.folders = {"/new"}
    assert rotate(site, "--path", "/new") == ExitCode.OK
    assert claims(machines) == {"vision/data-g3", "speech/data-g3"}, "a number is given once"


def test_what_the_api_refuses_halfway_is_taken_back(site: Path, machines: Machines) -> None:
    machines.refuses = "speech-data-g2"
    assert rotate(site, "--path", "/new") == ExitCode.STEP_FAILED
    assert text(site) == SITE
    assert claims(machines) == {"vision/data", "speech/data"}
    assert all("-g2" not in ref.name for ref in machines.api.objects)


# (number of the door, whether the new generation fails, further words): together they cover every stage
KILLS = [
    *((number, False, ()) for number in range(1, 24)),
    *((number, True, ()) for number in range(14, 29)),
    *((number, False, ("--same-name",)) for number in range(8, 46)),
    *((number, True, ("--same-name",)) for number in range(31, 48)),
]


@pytest.mark.parametrize(("number", "fails", "words"), sampled(KILLS))
def test_a_kill_at_any_door_loses_no_grant_and_is_gone_on_with(
    site: Path, machines: Machines, number: int, fails: bool, words: tuple[str, ...], monkeypatch: Any
) -> None:
    if not words:
        machines.api.objects[TRAIN] = pod("train", "data")
    if fails:
        monkeypatch.setattr("pai_install.app.rotations.storage_stages.passes", fails_once())
    machines.dies_at = number
    with pytest.raises(Killed):
        rotate(site, "--path", "/new", *words)
    machines.dies_at = -1
    loaded = load_site(site).site
    assert {(it.group, it.storage.name) for it in current_grants(loaded)} == {("vision", "data"), ("Speech", "data")}
    machines.apply()  # by another admin, meanwhile
    for grant in current_grants(loaded):
        assert Ref("persistentvolume", grant.volume) in machines.api.objects
        assert machines.place(grant.namespace, grant.claim) == (grant.storage.path if grant.claimed else "")
    if (code := rotate(site, "--path", "/new", *words)) != ExitCode.OK:
        assert (fails, code, text(site)) == (True, ExitCode.VERIFICATION_FAILED, SITE)
        assert machines.place("vision", "data") == "/old"
        assert rotate(site, "--path", "/new", *words) == ExitCode.OK
    machines.api.objects.pop(TRAIN, None)
    assert rotate(site, "--finish") == ExitCode.OK
    assert machines.settled()
    newest = read_rotations(site)["data"].claim
    assert newest == "data" if words else newest in ("data-g2", "data-g3")
    assert claims(machines) == {f"vision/{newest}", f"speech/{newest}"}
    assert machines.place("speech", newest) == machines.place("vision", newest) == "/new"
    assert text(site) == NEW
    assert [ref.name for ref in machines.api.objects if "pai-try" in ref.name or "policy" in ref.kind] == []


def fails_once() -> Any:
    """The new generation cannot be mounted, once."""
    answers = iter([False])
    return lambda _outcome: next(answers, True)


def test_the_claim_may_keep_its_name(
    site: Path, machines: Machines, monkeypatch: Any, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    seen: list[set[str]] = []

    def wait(_seconds: float) -> None:
        seen.append({ref.kind for ref in machines.api.objects if ref.name == "pai-storage-data"})
        assert machines.place("vision", "data") == "/old"
        machines.api.objects[TRAIN]["status"]["phase"] = "Succeeded"

    # not time.sleep itself: threads of other tests of this process call that, too
    clock = SimpleNamespace(sleep=wait, monotonic=time.monotonic)
    monkeypatch.setattr("pai_install.app.rotations.storage_pods.time", clock)
    assert rotate(site, "--path", "/new", "--same-name") == ExitCode.OK
    assert seen == [{"validatingadmissionpolicy", "validatingadmissionpolicybinding"}]
    assert capsys.readouterr().err == snapshot
    assert claims(machines) == {"vision/data", "speech/data"}
    assert TRAIN not in machines.api.objects, "Kubernetes keeps a PVC for a pod that ended, too"
    assert machines.place("speech", "data") == "/new"
    assert {ref.name for ref in machines.api.objects if ref.kind == "persistentvolume"} == {
        "vision-data-g2",
        "speech-data-g2",
    }
    assert machines.settled()
    assert rotate(site, "--path", "/third") == ExitCode.VERIFICATION_FAILED
    machines.folders.add("/third")
    assert rotate(site, "--path", "/third") == ExitCode.OK
    assert claims(machines) == {"vision/data-g3", "speech/data-g3"}


def test_a_pod_that_does_not_end_in_time_keeps_all_as_it_was(site: Path, machines: Machines, monkeypatch: Any) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    clock = iter(range(0, 100000, 50))
    monkeypatch.setattr("pai_install.app.rotations.storage_pods.time.sleep", lambda _seconds: None)
    monkeypatch.setattr("pai_install.app.rotations.storage_pods.time.monotonic", lambda: next(clock))
    assert rotate(site, "--path", "/new", "--same-name", "--timeout", "120") == ExitCode.PREFLIGHT_FAILED
    assert text(site) == SITE
    assert claims(machines) == {"vision/data", "speech/data"}
    assert machines.place("vision", "data") == "/old"
    assert machines.settled()
    assert all("policy" not in ref.kind for ref in machines.api.objects)
    assert not [patch for method, patch in machines.api.calls if method == "patch"], "its PV is bound as before"


def test_a_pv_whose_claim_was_given_up_takes_the_next_one_of_that_name(
    site: Path, machines: Machines, monkeypatch: Any
) -> None:
    monkeypatch.setattr("pai_install.app.rotations.storage_stages.passes", fails_once())
    assert rotate(site, "--path", "/new", "--same-name") == ExitCode.VERIFICATION_FAILED
    assert (text(site), machines.place("vision", "data")) == (SITE, "/old")
    (patches,) = [patches for method, patches in machines.api.calls if method == "patch"]
    assert [patch.ref.name for patch in patches] == ["vision-data-g1", "speech-data-g1"]
    assert patches[0].body == {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}}


def test_an_emergency_ends_the_pods_that_use_the_old_one(site: Path, machines: Machines) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    machines.api.objects[Ref("pod", "other", "vision")] = pod("other", "of-theirs")
    assert rotate(site, "--path", "/new", "--emergency") == ExitCode.OK
    assert [ref.name for ref in machines.api.objects if ref.kind == "pod"] == ["other"]
    assert claims(machines) == {"vision/data-g2", "speech/data-g2"}
    assert machines.settled()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), ExitCode.USAGE),
        (("--password-env", "X"), ExitCode.USAGE),
        (("--path", "relative"), ExitCode.SITE_INVALID),
    ],
)
def test_what_cannot_be_is_refused(site: Path, machines: Machines, words: tuple[str, ...], code: ExitCode) -> None:
    assert rotate(site, *words) == code
    assert (text(site), machines.requests) == (SITE, [])


def test_a_storage_of_no_group_is_not_rotated(site: Path, machines: Machines, capsys: Any) -> None:
    assert run(["storage", "rotate", "idle", "--site", str(site), "--path", "/b", "--yes"]) == ExitCode.PREFLIGHT_FAILED
    assert "code: storage-of-no-group" in capsys.readouterr().err
    assert machines.requests == []


def test_a_cluster_that_differs_is_applied_first(site: Path, machines: Machines, capsys: Any) -> None:
    del machines.api.objects[Ref("persistentvolumeclaim", "data", "speech")]
    assert rotate(site, "--path", "/new") == ExitCode.PREFLIGHT_FAILED
    assert "code: add-ons-not-applied" in capsys.readouterr().err
    assert text(site) == SITE


def test_another_rotation_waits_for_the_first(site: Path, machines: Machines, capsys: Any) -> None:
    machines.dies_at = 8
    with pytest.raises(Killed):
        rotate(site, "--path", "/new")
    machines.dies_at = -1
    assert rotate(site, "--path", "/third") == ExitCode.PREFLIGHT_FAILED
    assert "code: storage-rotation-unfinished" in capsys.readouterr().err
    assert rotate(site, "--finish") == ExitCode.OK
    assert text(site) == NEW


def test_what_a_rotation_has_begun_is_not_removed_and_its_claim_is_no_name_of_another(
    site: Path, machines: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    machines.dies_at = 8
    with pytest.raises(Killed):
        rotate(site, "--path", "/new")
    machines.dies_at = -1
    assert read_rotations(site)["data"].hidden
    assert run(["storage", "remove", "data", "--revoke", "--site", str(site)]) == ExitCode.PREFLIGHT_FAILED
    assert rotate(site, "--finish") == ExitCode.OK
    words = ["--type", "nfs", "--server", "nas", "--path", "/x", "--site", str(site)]
    assert run(["storage", "add", "data-g2", *words]) == ExitCode.USAGE
    assert capsys.readouterr().err == snapshot


def test_the_data_comes_over_before_a_job_hears_of_the_new_place(
    site: Path, holding: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    holding.api.objects[TRAIN] = pod("train", "data")
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.OK
    err = capsys.readouterr().err
    assert err == snapshot
    assert holding.data["/new"] == {"a": "1", "b": "2"}
    assert [mode for mode, _node in holding.copies] == ["measure", "copy"], "its last pod still writes"
    holding.data["/old"]["c"] = "3"
    holding.data["/new"]["a"] = "by a new job"
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    assert capsys.readouterr().out == snapshot
    assert rotate(site, "--finish") == ExitCode.OK
    assert holding.copies[2:] == [], "as a pod uses it"
    assert rotate(site, "--path", "/third", "--copy") == ExitCode.PREFLIGHT_FAILED
    assert "code: storage-copy-unfinished" in capsys.readouterr().err
    del holding.api.objects[TRAIN]
    assert rotate(site, "--finish") == ExitCode.OK
    assert holding.copies[2:] == [("copy-last", "one"), ("verify-last", "two")], "another worker reads than wrote"
    assert holding.data["/new"] == {"a": "by a new job", "b": "2", "c": "3"}
    assert claims(holding) == {"vision/data-g2", "speech/data-g2"}
    assert holding.settled()
    assert stand_ins(holding) == []


def test_no_new_pod_may_use_the_old_claim_while_the_last_copy_is_made(
    site: Path, holding: Machines, monkeypatch: Any
) -> None:
    seen: list[bool] = []
    carried = holding.carried

    def watched(mode: str, *more: Any) -> dict[str, str]:
        seen.append(Ref("validatingadmissionpolicy", "pai-storage-data") in holding.api.objects)
        return carried(mode, *more)

    monkeypatch.setattr(holding, "carried", watched)
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.OK
    assert seen == [False, False, True, True]
    assert holding.settled()


def test_with_the_same_name_the_last_copy_is_made_before_the_claim_is_given_back(site: Path, holding: Machines) -> None:
    assert rotate(site, "--path", "/new", "--copy", "--same-name") == ExitCode.OK
    assert [mode for mode, _node in holding.copies] == ["measure", "copy", "copy-last", "verify-last"]
    assert holding.data["/new"] == holding.data["/old"]
    assert claims(holding) == {"vision/data", "speech/data"}
    assert holding.place("vision", "data") == "/new"
    assert holding.settled()


@pytest.mark.parametrize(
    ("number", "words"), sampled([(number, words) for number in range(3, 60) for words in ((), ("--same-name",))])
)
def test_a_kill_at_any_door_loses_no_data(site: Path, holding: Machines, number: int, words: tuple[str, ...]) -> None:
    argv = ("--path", "/new", "--copy", *words)
    holding.dies_at = number
    try:
        rotate(site, *argv)
    except Killed:
        holding.dies_at = -1
        rotate(site, *argv)
    holding.dies_at = -1
    holding.apply()
    assert rotate(site, "--finish") == ExitCode.OK
    assert holding.data["/new"] == {"a": "1", "b": "2"}
    assert holding.place("vision", read_rotations(site)["data"].claim) == "/new"
    assert holding.settled()
    assert stand_ins(holding) == []
    assert not [ref for ref in holding.api.objects if ref.kind == "pod"]


NO_ROOM = {"files": "9", "bytes": "4096", "held_kib": "4", "free_kib": "2", "empty": "yes"}


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (NO_ROOM, "code: storage-copy-without-room"),
        ({"same": "yes"}, "code: storage-copy-to-itself"),
        ({"error": "Permission denied", "step": "count"}, "code: copy-failed"),
    ],
)
def test_what_cannot_be_copied_changes_nothing(
    site: Path, holding: Machines, answer: dict[str, str], word: str, capsys: Any
) -> None:
    before = dict(holding.api.objects)
    holding.answers["measure"] = [answer]
    assert rotate(site, "--path", "/new", "--copy") in (ExitCode.PREFLIGHT_FAILED, ExitCode.STEP_FAILED)
    assert word in capsys.readouterr().err
    assert (text(site), holding.api.objects) == (SITE, before)
    assert not rotations_file(site).exists()


@pytest.mark.parametrize("changes", [("--path", "/old/below"), ("--mount-options", "nfsvers=4.1")])
def test_a_place_that_is_not_another_is_not_copied_to(site: Path, holding: Machines, changes: tuple[str, ...]) -> None:
    assert rotate(site, *changes, "--copy") == ExitCode.PREFLIGHT_FAILED
    assert (text(site), holding.copies) == (SITE, [])


def test_a_first_copy_that_fails_is_taken_back_and_one_whose_pod_is_lost_goes_on(
    site: Path, holding: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    holding.answers["copy"] = [{"lost": "evicted"}, {"error": "No space left on device (28)", "step": "copy"}]
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.STEP_FAILED
    err = capsys.readouterr().err
    assert err == snapshot
    assert text(site) == SITE
    assert claims(holding) == {"vision/data", "speech/data"}
    assert stand_ins(holding) == []
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.OK
    assert holding.data["/new"] == holding.data["/old"]


def test_pods_that_are_lost_again_and_again_end_the_command_and_not_the_rotation(site: Path, holding: Machines) -> None:
    holding.answers["copy"] = [{"lost": "evicted"}] * 6
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.UNREACHABLE
    assert stage_of(read_rotations(site)["data"]) == "copy"
    holding.answers.clear()
    assert rotate(site, "--finish") == ExitCode.OK
    assert holding.data["/new"] == holding.data["/old"]


@pytest.mark.parametrize("words", [(), ("--same-name",)])
def test_what_differs_in_the_end_retires_nothing(
    site: Path, holding: Machines, words: tuple[str, ...], capsys: Any
) -> None:
    holding.answers["verify-last"] = [{"differ": "2", "example": ">fc a", "step": "done"}] * 3
    assert rotate(site, "--path", "/new", "--copy", *words) == ExitCode.VERIFICATION_FAILED
    assert "2 entries differ" in capsys.readouterr().err
    if words:
        assert (text(site), claims(holding)) == (SITE, {"vision/data", "speech/data"})
        assert holding.place("vision", "data") == "/old"
        return
    assert claims(holding) == {"vision/data", "speech/data", "vision/data-g2", "speech/data-g2"}
    assert rotate(site, "--finish", "--no-copy") == ExitCode.OK
    assert claims(holding) == {"vision/data-g2", "speech/data-g2"}


def test_an_emergency_ends_pods_after_the_first_copy(site: Path, holding: Machines) -> None:
    holding.api.objects[TRAIN] = pod("train", "data")
    assert rotate(site, "--path", "/new", "--emergency", "--copy") == ExitCode.OK
    assert [mode for mode, _node in holding.copies] == ["measure", "copy", "copy-last", "verify-last"]
    assert TRAIN not in holding.api.objects
    assert claims(holding) == {"vision/data-g2", "speech/data-g2"}
    assert holding.settled()


def test_each_machine_copies_its_own_folder_one_after_the_other(site: Path, holding: Machines) -> None:
    (site / SERVICES).write_text(
        SITE.replace("type: nfs\n    server: nas\n    path: /old", "type: hostPath\n    path: /old")
    )
    holding.api.objects = {ref: it for ref, it in holding.api.objects.items() if ref.kind == "node"}
    holding.apply()
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.OK
    modes = ("measure", "copy", "copy-last", "verify-last")
    assert holding.copies == [(mode, node) for mode in modes for node in ("one", "two")]


def test_what_was_begun_without_a_copy_goes_on_without(site: Path, holding: Machines, capsys: Any) -> None:
    holding.dies_at = 12
    with pytest.raises(Killed):
        rotate(site, "--path", "/new")
    holding.dies_at = -1
    assert rotate(site, "--path", "/new", "--copy") == ExitCode.PREFLIGHT_FAILED
    assert "code: storage-rotation-without-copy" in capsys.readouterr().err
    assert rotate(site, "--finish") == ExitCode.OK


def test_check_says_what_would_be_copied(
    site: Path, holding: Machines, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    assert run(["storage", "rotate", "data", "--site", str(site), "--path", "/new", "--copy", "--check"]) == ExitCode.OK
    err = capsys.readouterr().err
    assert err == snapshot
    assert holding.copies == []
