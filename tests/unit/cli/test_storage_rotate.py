"""`pai-install storage rotate` from argv to exit code, on machines in memory; killed at every door."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from pai_install.cli._shared import storage_stages
from pai_install.cluster.model import Ref
from pai_install.errors import ExitCode
from pai_install.site.load import SERVICES, load_site
from pai_install.site.rotations import read_rotations, rotations_file
from pai_install.storage.compile import current_grants
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


def test_a_storage_that_no_pod_uses_is_rotated_at_once(site: Path, machines: Machines, capsys: Any) -> None:
    assert rotate(site, "--path", "/new") == ExitCode.OK
    out, err = capsys.readouterr()
    assert "-    path: /old   # until spring\n+    path: /new   # until spring\n" in out
    assert "data: nas:/old -> nas:/new\n" in err
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
    assert "data is defined so already: nothing to do" in capsys.readouterr().err


def test_the_old_goes_when_its_last_pod_ends(site: Path, machines: Machines, capsys: Any) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    assert rotate(site, "--path", "/new") == ExitCode.OK
    err = capsys.readouterr().err
    assert "vision/train  data  one   Running\non one\n" in err
    assert err.endswith("what they use stays until they end; then: pai-install storage rotate data --finish\n")
    assert claims(machines) == {"vision/data", "speech/data", "vision/data-g2", "speech/data-g2"}
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "Speech  speech     data     speech-data-g1  1           jobs that run  yes\n" in shown
    assert "generation 1 stands until no pod uses it: pai-install storage rotate data --finish" in shown
    assert run(["status", "--offline", "--site", str(site)]) == ExitCode.OK
    assert "storage data: generation 1 stands until no pod uses it" in capsys.readouterr().err
    assert rotate(site, "--finish") == ExitCode.OK
    assert "vision/data" in claims(machines)
    machines.api.objects[TRAIN]["status"]["phase"] = "Succeeded"
    assert rotate(site, "--finish") == ExitCode.OK
    assert claims(machines) == {"vision/data-g2", "speech/data-g2"}
    assert rotate(site, "--finish") == ExitCode.OK
    assert run(["storage", "show", "data", "--site", str(site)]) == ExitCode.OK
    assert "--finish" not in capsys.readouterr().out


def test_a_place_that_no_worker_can_mount_changes_nothing(site: Path, machines: Machines, capsys: Any) -> None:
    machines.folders.remove("/new")
    before = dict(machines.api.objects)
    assert rotate(site, "--path", "/new") == ExitCode.VERIFICATION_FAILED
    assert text(site) == SITE
    assert not rotations_file(site).exists()
    assert machines.api.objects == before
    assert "nothing was changed: nas:/new cannot be used" in capsys.readouterr().err


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
    *((number, False, ()) for number in range(1, 24, 5)),
    *((number, True, ()) for number in range(14, 29, 5)),
    *((number, False, ("--same-name",)) for number in range(8, 46, 5)),
    *((number, True, ("--same-name",)) for number in range(31, 48, 5)),
]


@pytest.mark.parametrize(("number", "fails", "words"), KILLS)
def test_a_kill_at_any_door_loses_no_grant_and_is_gone_on_with(
    site: Path, machines: Machines, number: int, fails: bool, words: tuple[str, ...], monkeypatch: Any
) -> None:
    if not words:
        machines.api.objects[TRAIN] = pod("train", "data")
    if fails:
        monkeypatch.setattr("pai_install.cli._shared.storage_stages.good", fails_once())
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


def test_the_claim_may_keep_its_name(site: Path, machines: Machines, monkeypatch: Any, capsys: Any) -> None:
    machines.api.objects[TRAIN] = pod("train", "data")
    seen: list[set[str]] = []

    def wait(_seconds: float) -> None:
        seen.append({ref.kind for ref in machines.api.objects if ref.name == "pai-storage-data"})
        assert machines.place("vision", "data") == "/old"
        machines.api.objects[TRAIN]["status"]["phase"] = "Succeeded"

    monkeypatch.setattr("pai_install.cli._shared.storage_stages.time.sleep", wait)
    assert rotate(site, "--path", "/new", "--same-name") == ExitCode.OK
    assert seen == [{"validatingadmissionpolicy", "validatingadmissionpolicybinding"}]
    assert "waiting for 1 pod that use it, 600 s at most" in capsys.readouterr().err
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
    monkeypatch.setattr("pai_install.cli._shared.storage_stages.time.sleep", lambda _seconds: None)
    monkeypatch.setattr("pai_install.cli._shared.storage_stages.time.monotonic", lambda: next(clock))
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
    monkeypatch.setattr("pai_install.cli._shared.storage_stages.good", fails_once())
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
    assert "idle is granted to no group" in capsys.readouterr().err
    assert machines.requests == []


def test_a_cluster_that_differs_is_applied_first(site: Path, machines: Machines, capsys: Any) -> None:
    del machines.api.objects[Ref("persistentvolumeclaim", "data", "speech")]
    assert rotate(site, "--path", "/new") == ExitCode.PREFLIGHT_FAILED
    assert "run apply first" in capsys.readouterr().err
    assert text(site) == SITE


def test_another_rotation_waits_for_the_first(site: Path, machines: Machines, capsys: Any) -> None:
    machines.dies_at = 8
    with pytest.raises(Killed):
        rotate(site, "--path", "/new")
    machines.dies_at = -1
    assert rotate(site, "--path", "/third") == ExitCode.PREFLIGHT_FAILED
    assert "another rotation of data is unfinished" in capsys.readouterr().err
    assert rotate(site, "--finish") == ExitCode.OK
    assert text(site) == NEW


def test_what_a_rotation_has_begun_is_not_removed_and_its_claim_is_no_name_of_another(
    site: Path, machines: Machines, capsys: Any
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
    assert "data-g2 is the claim of data now" in capsys.readouterr().err
