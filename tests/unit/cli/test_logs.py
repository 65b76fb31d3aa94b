"""`pai-install logs` from argv to exit code, before machines and a cluster in memory."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pai_install.app import logs
from pai_install.app.context import App
from pai_install.app.frontend import LogLine
from pai_install.app.log_sources import SERVICES
from pai_install.app.logs import ReadLogs, read_logs, since_of
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.objects import JsonObject
from tests.addons import ROOT
from tests.errors import raises
from tests.unit.cli.stub_environment import World, run
from tests.unit.cli.test_job import GONE, lines, record, with_uid
from tests.unit.cli.test_vc import site
from tests.unit.cluster.fake import FakeCluster
from tests.unit.jobs.test_state import WHOLE, job
from tests.unit.scheduling.test_read import VALID
from tests.unit.site.rules.scheduling.sites import GROUPS, LAYOUT


@pytest.fixture
def world(in_world: Any) -> World:
    made: World = in_world(World())
    return made


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(site(tmp_path, VALID + GROUPS))


def said(world: World, *lines: str) -> None:
    world.outputs.answer = lambda host, _program: [line.format(host=host) for line in lines]


def read(folder: str, *words: str) -> int:
    return run(["logs", "--site", folder, *words])


def workload(name: str, addon: str, namespace: str = "kueue-system") -> JsonObject:
    return {
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"pai-install/addon": addon}},
        "spec": {"selector": {"matchLabels": {"app": name}}},
    }


def system_pod(name: str, app: str, namespace: str = "kueue-system", node: str = "g1") -> JsonObject:
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {"app": app}}
    spec = {"nodeName": node, "containers": [{"name": "main"}]}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {}}


def test_journal_of_a_node(folder: str, world: World, capsys: Any) -> None:
    said(world, "2026-11-26T10:00:00+0000 {host} kubelet[1]: ready")
    assert read(folder, "g1") == ExitCode.OK
    assert capsys.readouterr().out == "2026-11-26T10:00:00+0000 g1 kubelet[1]: ready\n"
    ((host, program),) = world.outputs.asked
    assert host == "g1"
    assert program[0] == "journalctl"
    assert {"kubelet", "containerd", "docker", "pai-component-store", "pai-gpu-use", "pai-job-recorder"} <= set(program)
    assert program[program.index("--lines") + 1] == str(logs.DEFAULT_LINES)


def test_service_of_all_machines_with_the_name_before_each_line(folder: str, world: World, capsys: Any) -> None:
    said(world, "one", "two")
    assert read(folder, "kubelet") == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    hosts = [host for host, _ in world.outputs.asked]
    assert {"m1", "g1"} <= set(hosts)
    assert len(lines) == 2 * len(hosts)
    assert lines[0:2] == ["m1: one", "m1: two"]


@pytest.mark.parametrize(("name", "hosts"), [("registry", {"m1"}), ("job-recorder", {"m1"}), ("etcd", {"m1"})])
def test_service_of_the_control_plane(folder: str, world: World, name: str, hosts: set[str]) -> None:
    said(world, "line")
    assert read(folder, name, "--since", "2026-11-26T10:00", "--lines", "0") == ExitCode.OK
    assert {host for host, _ in world.outputs.asked} == hosts
    program = world.outputs.asked[0][1]
    assert ("all" if name != "etcd" else "-1") in program
    assert ("@1795687200" if name != "etcd" else "2026-11-26T10:00:00Z") in program


def test_services_of_gpus_are_read_where_gpus_are(folder: str, world: World) -> None:
    assert read(folder, "gpu-meter") == ExitCode.OK
    assert "m1" not in {host for host, _ in world.outputs.asked}
    assert world.outputs.asked


def test_limit(folder: str, world: World, capsys: Any) -> None:
    said(world, "line")
    assert read(folder, "kubelet", "--limit", "g1") == ExitCode.OK
    assert capsys.readouterr().out == "line\n"
    assert read(folder, "kubelet", "--limit", "nowhere") == ExitCode.USAGE


def test_dead_machine_stops_no_other(folder: str, world: World, capsys: Any) -> None:
    said(world, "line of {host}")
    world.outputs.off = frozenset({"g1"})
    assert read(folder, "kubelet") == ExitCode.UNREACHABLE
    shown = capsys.readouterr()
    assert "m1: line of m1" in shown.out
    assert "g1:" not in shown.out
    assert "g1" in shown.err


@pytest.mark.parametrize("words", [(), ("--follow",), ("--format", "json")])
def test_control_characters_appear_escaped(folder: str, world: World, capsys: Any, words: Sequence[str]) -> None:
    said(world, "a\tb\x1b]0;evil\x07\u202e\x9b2J")
    assert read(folder, "g1", *words) == ExitCode.OK
    out = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(out)
    assert "\\u001b]0;evil\\u0007" in out.replace("\\\\", "\\")


def test_raw(folder: str, world: World, capsys: Any) -> None:
    said(world, "\x1b[31mred")
    assert read(folder, "g1", "--raw") == ExitCode.OK
    assert capsys.readouterr().out == "\x1b[31mred\n"


def test_lines_as_json(folder: str, world: World, capsys: Any) -> None:
    said(world, 'say "x"')
    assert read(folder, "kubelet", "--limit", "m1,g1", "--format", "json") == ExitCode.OK
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == [{"source": "m1", "text": 'say "x"'}, {"source": "g1", "text": 'say "x"'}]


def test_grep_counts_the_last_lines_after_the_filter(folder: str, world: World, capsys: Any) -> None:
    said(world, *(f"line {number} {'hit' if number % 10 == 0 else ''}" for number in range(1000)))
    assert read(folder, "g1", "--grep", "h.t$", "--lines", "2") == ExitCode.OK
    assert capsys.readouterr().out == "line 980 hit\nline 990 hit\n"


def test_pods_of_an_add_on(folder: str, world: World, capsys: Any) -> None:
    world.api = FakeCluster.of(
        workload("kueue-controller-manager", "kueue"), system_pod("kueue-abc", "kueue-controller-manager"),
        system_pod("other", "other"),
    )  # fmt: skip
    world.api.logged = {"kueue-abc": "started\nready", "other": "never"}
    for name in ("kueue", "kueue-controller-manager", "service/kueue", "kueue-abc", "pod/kueue-system/kueue-abc"):
        assert read(folder, name) == ExitCode.OK
        assert capsys.readouterr().out == "started\nready\n", name


def test_job(folder: str, world: World, capsys: Any) -> None:
    world.api = FakeCluster.of(job(), *WHOLE[:3])
    world.api.logged = {one["metadata"]["name"]: "out\x1b" for one in WHOLE}
    for name in ("job/ps.job", "ps.job"):
        assert read(folder, name) == ExitCode.OK
        assert capsys.readouterr().out.splitlines() == [
            "ps_server-0: out\\u001b",
            "ps_server-1: out\\u001b",
            "worker-v2-0: out\\u001b",
        ]


STORE = {
    "kind": "Pod",
    "metadata": {"name": "logs-1", "namespace": "pai-logs", "labels": {"app.kubernetes.io/name": "logs"}},
    "spec": {"nodeName": "m1"},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """A site with a store of logs."""
    return str(site(tmp_path, VALID + GROUPS + "logs: true\n"))


def store_has(world: World, *files: str, lines: Sequence[str] = ()) -> list[str]:
    """The questions that the store gets from now on. lines: the newest first."""
    asked = []

    def answer(host: str, program: Sequence[str]) -> list[str]:
        assert host == "m1"
        asked.append(" ".join(program[5:]))
        rows = files if "uniq by (file)" in asked[-1] else [f"2026-11-26T10:00:00Z stdout F {it}" for it in lines]
        return [json.dumps({"file": it, "_msg": it, "_time": "2026-11-26T10:00:00Z"}) for it in rows]

    world.outputs.answer = answer
    return asked


def gone_job(*, store: bool = True) -> FakeCluster:
    own = with_uid(job(), "one")
    kept = record(own, *WHOLE, removed=GONE), lines(own, worker_v2_0_01="last words\n", ps_server_0_01="recorded\n")
    return FakeCluster.of(*kept, *([STORE] if store else []))


def test_job_whose_pods_are_gone(stored: str, world: World, capsys: Any) -> None:
    world.api = gone_job()
    asked = store_has(world, lines=["two\x1b", "one"])
    assert read(stored, "ps.job", "--lines", "2") == ExitCode.OK
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if line.startswith("worker-v2-0")] == ["worker-v2-0: one", "worker-v2-0: two\\u001b"]
    assert all("limit 2" in question for question in asked)
    assert all('extra_stream_filters={file=~"^/var/log/pods/vision_' in question for question in asked)


def test_lines_that_the_store_does_not_have_are_the_recorded_ones(stored: str, world: World, capsys: Any) -> None:
    for store in (True, False):
        world.api = gone_job(store=store)
        store_has(world)
        read(stored, "ps.job")
        out = capsys.readouterr().out.splitlines()
        assert {"worker-v2-0: last words", "ps_server-0: recorded"} <= set(out)


def test_pod_that_is_gone(stored: str, world: World, capsys: Any) -> None:
    world.api = FakeCluster.of(STORE)
    asked = store_has(world, "/var/log/pods/vision_x-1_u/main/0.log", lines=["two", "hit one"])
    for name in ("x-1", "pod/x-1", "vision/x-1"):
        assert read(stored, name) == ExitCode.OK
        assert capsys.readouterr().out == "hit one\ntwo\n"
    assert read(stored, "x-1", "--grep", "hit", "--since", "2026-11-26T09:00") == ExitCode.OK
    assert capsys.readouterr().out == "hit one\n"
    assert "start=2026-11-26T09:00:00Z" in asked[-1]
    assert read(stored, "x-1", "--follow", "--lines", "1") == ExitCode.OK


def test_pods_that_are_gone_and_ambiguous_or_unknown(stored: str, world: World, capsys: Any) -> None:
    world.api = FakeCluster.of(STORE)
    store_has(world, "/var/log/pods/vision_x-1_u/main/0.log", "/var/log/pods/nlp_x-1_u/main/0.log")
    assert read(stored, "x-1") == ExitCode.USAGE
    assert "pod/nlp/x-1" in capsys.readouterr().err
    store_has(world)
    assert read(stored, "x-2") == ExitCode.USAGE
    assert read(stored, "no name") == ExitCode.USAGE
    world.api = FakeCluster.of()
    assert read(stored, "x-1") == ExitCode.VERIFICATION_FAILED
    assert "code: log-store-not-ready" in capsys.readouterr().err


def test_job_without_pods(folder: str, world: World, capsys: Any) -> None:
    world.api = FakeCluster.of(job())
    assert read(folder, "ps.job") == ExitCode.OK
    assert "ps.job has no pods: WAITING" in capsys.readouterr().err


def test_job_of_a_member_does_not_hide_a_log_of_the_site(folder: str, world: World, capsys: Any) -> None:
    taken = job()
    taken["metadata"]["name"] = "etcd"
    world.api = FakeCluster.of(taken)
    said(world, "etcd of {host}")
    assert read(folder, "etcd") == ExitCode.OK
    assert capsys.readouterr().out == "etcd of m1\n"


def test_ambiguous_names_list_their_meanings(tmp_path: Path, world: World, capsys: Any) -> None:
    folder = str(site(tmp_path, VALID + GROUPS, LAYOUT.replace("hostname: g1,", "hostname: etcd,")))
    assert read(folder, "etcd") == ExitCode.USAGE
    shown = capsys.readouterr().err
    assert "node/etcd" in shown
    assert "service/etcd" in shown
    said(world, "line")
    assert read(folder, "node/etcd") == ExitCode.OK
    assert world.outputs.asked[-1][0] == "etcd"
    world.api = FakeCluster.of(system_pod("same", "a"), system_pod("same", "b", "kube-system"))
    assert read(folder, "same") == ExitCode.USAGE
    assert "pod/kube-system/same" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["nothing", "node/m9", "service/etc", "pod/x", "job/none", "", "/"])
def test_unknown_target(folder: str, world: World, target: str) -> None:
    assert read(folder, target) == ExitCode.USAGE


@pytest.mark.parametrize("words", [("--since", "soon"), ("--since", "5y"), ("--grep", "("), ("--lines", "-1")])
def test_wrong_arguments(folder: str, world: World, words: Sequence[str]) -> None:
    assert read(folder, "g1", *words) == ExitCode.USAGE
    assert not world.outputs.asked


def test_since() -> None:
    assert since_of("", 1000) is None
    assert [since_of(word, 1_000_000) for word in ("30s", "2m", "1h", "2d")] == [999_970, 999_880, 996_400, 827_200]
    assert since_of("1970-01-02T00:00", 0) == 86_400
    assert since_of("1970-01-02T00:00+01:00", 0) == 82_800


class Taking:
    """A front end that keeps the lines. most: after so many, Ctrl-C."""

    def __init__(self, most: int) -> None:
        self.lines: list[LogLine] = []
        self.most = most

    def notify(self, event: object) -> None:
        if isinstance(event, LogLine):
            self.lines.append(event)
            if len(self.lines) == self.most:
                raise KeyboardInterrupt

    def confirm(self, question: object) -> bool:
        raise AssertionError(question)

    def require_answers(self) -> None:
        raise AssertionError


def test_follow_prints_lines_as_they_come_and_ends_with_ctrl_c(folder: str, world: World) -> None:
    """Both machines print without end, so only parallel reading shows both."""

    enough = threading.Event()

    def endless(host: str, _program: Sequence[str]) -> Any:
        while not enough.wait(0.01):
            yield f"of {host}"

    world.outputs.answer = endless
    front = Taking(200)
    with App(Path(folder), world, front) as app:
        code = read_logs(app, ReadLogs(target="kubelet", limit=("m1", "g1"), follow=True))
    enough.set()
    assert code is ExitCode.OK
    assert {line.source for line in front.lines} == {"m1", "g1"}
    assert all(line.mixed for line in front.lines)


def test_ctrl_c_waits_for_no_machine_that_hangs(folder: str, world: World) -> None:
    hangs = threading.Event()

    def answer(host: str, _program: Sequence[str]) -> Any:
        yield "first"
        if host == "g1":
            hangs.wait(60)

    world.outputs.answer = answer
    started = time.monotonic()
    with App(Path(folder), world, Taking(1)) as app, pytest.raises(KeyboardInterrupt):
        read_logs(app, ReadLogs(target="kubelet", limit=("m1", "g1")))
    assert time.monotonic() - started < 10
    hangs.set()


def test_every_service_has_a_program(folder: str, world: World) -> None:
    for name, service in SERVICES.items():
        world.outputs.asked.clear()
        assert read(folder, f"service/{name}") == ExitCode.OK
        assert bool(service.units) != bool(service.container)
        assert world.outputs.asked, name


def test_every_unit_of_a_role_belongs_to_a_service() -> None:
    written = (path.read_text() for kind in ("tasks", "vars") for path in ROOT.glob(f"roles/*/{kind}/*.yml"))
    units = {unit for text in written for unit in re.findall(r"name: ([a-z-]+)\.service", text)}
    assert units
    assert units <= {unit for service in SERVICES.values() for unit in service.units}


def test_error_of_one_log_is_one_line(folder: str, world: World, capsys: Any) -> None:
    def answer(host: str, _program: Sequence[str]) -> Any:
        if host == "g1":
            raise PaiError("cannot read from g1: gone", code="machine-not-read")
        return ["line"]

    world.outputs.answer = answer
    assert read(folder, "kubelet") == ExitCode.STEP_FAILED
    assert "cannot read from g1" in capsys.readouterr().err
    with raises("unknown-log-target"), App(Path(folder), world, Taking(9)) as app:
        read_logs(app, ReadLogs(target="nothing"))
