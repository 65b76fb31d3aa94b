"""The real engine: secrets, surroundings, failures of Ansible itself, and ending early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_install.engine.base import EventKind, RunRequest
from pai_install.engine.processes import OwnerProcess, owned_by
from pai_install.engine.runner import RunnerEngine
from pai_install.redact import Redactor
from pai_install.run.host_results import HostResults
from tests.errors import raises
from tests.stopwatch import Stopwatch


def plain(bench: Any) -> tuple[str, ...]:
    """The planted secrets as they may appear in a text file."""
    return (bench.token, bench.password, json.dumps(bench.password)[1:-1])


def assert_clean(bench: Any, *names: str) -> None:
    """No file below the bench's folder holds a secret, but those that the playbooks were told to write."""
    files = [path for path in bench.folder.rglob("*") if path.is_file() and path.suffix != ".conf"]
    assert {path.name for path in files} >= set(names)
    for path in files:
        for secret in plain(bench):
            assert secret.encode() not in path.read_bytes(), f"{path} holds {secret}"


def test_secrets_reach_the_task_and_no_file(engine: RunnerEngine, bench: Any) -> None:
    for playbook in ("ok.yml", "loud.yml", "no_log.yml"):
        list(engine.run(RunRequest(playbook, bench.inventory("a", "b"), extra_vars={"extra_token": bench.token})))
    assert (bench.folder / "a.conf").read_text() == f"password = {bench.password}\n"
    assert_clean(bench, "ansible.log")
    log = (bench.folder / "ansible.log").read_text()
    assert "the token is ********" in log
    assert "TASK [greeting : Greet]" in log


def test_secrets_are_in_no_command_line(engine: RunnerEngine, bench: Any) -> None:
    lines: set[str] = set()
    events = engine.run(RunRequest("slow.yml", bench.inventory("a"), extra_vars={"my_token": bench.token}))
    with closing(events):
        next(events)  # the task has begun
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any("sleep 120" in line for line in lines):
            time.sleep(0.02)
            for pid in owned_by(OwnerProcess.current()):
                try:
                    lines.add(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
                except OSError:
                    continue
    assert any("ansible.cli.playbook" in line for line in lines)
    assert any("sleep 120" in line for line in lines)
    for line in lines:
        assert not any(secret in line for secret in plain(bench))


def test_run_folder_is_removed_and_inventory_is_not_left(engine: RunnerEngine, bench: Any) -> None:
    list(engine.run(RunRequest("ok.yml", bench.inventory("a"))))
    assert not list((bench.folder / "work").glob("run-*"))


def test_limit_and_extra_variables_reach_ansible_and_the_users_settings_do_not(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_STDOUT_CALLBACK", "minimal")
    monkeypatch.setenv("ANSIBLE_FORKS", "1")
    monkeypatch.setenv("MY_OWN_SETTING", "1")
    request = RunRequest(
        "environment.yml", bench.inventory("a", "b"), limit=("b",), extra_vars={"extra": "said {{ 1 + 1 }}"}
    )
    with bench.engine() as engine:
        events = [event for event in engine.run(request) if event.host]
    assert {event.host for event in events} == {"b"}
    seen = dict(line.partition("=")[::2] for line in events[0].result["stdout_lines"])
    assert "MY_OWN_SETTING" not in seen
    assert "ANSIBLE_FORKS" not in seen
    assert seen["ANSIBLE_INJECT_FACT_VARS"] == "False"
    assert events[1].result["msg"] == "said {{ 1 + 1 }}", "site-template: text is text"


def test_facts_of_one_run_serve_the_next(engine: RunnerEngine, bench: Any) -> None:
    inventory = bench.inventory("a", "b")
    list(engine.run(RunRequest("facts.yml", inventory)))
    said = [e.result.get("msg") for e in engine.run(RunRequest("use_facts.yml", inventory)) if e.host == "b"]
    assert said == ["b was here"]


def test_playbook_that_cannot_be_read_is_an_error_with_ansibles_words(engine: RunnerEngine, bench: Any) -> None:
    with raises("ansible-did-not-run", "broken.yml") as caught:
        list(engine.run(RunRequest("broken.yml", bench.inventory("a"))))
    assert "no_such_module" in caught.value.details
    assert not list((bench.folder / "work").glob("run-*"))


def test_missing_playbook_is_named_before_anything_starts(engine: RunnerEngine, bench: Any) -> None:
    with raises("playbook-missing", "nowhere.yml"):
        next(engine.run(RunRequest("nowhere.yml", bench.inventory("a"))))


def test_engine_outside_its_context_is_a_bug(bench: Any) -> None:
    engine = bench.engine()
    (bench.folder / "work").mkdir()
    with pytest.raises(RuntimeError, match="context manager"):
        next(engine.run(RunRequest("ok.yml", bench.inventory("a"))))


def wait_for_sleep() -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for pid in owned_by(OwnerProcess.current()):
            try:
                if b"sleep\x00120" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return
            except OSError:
                continue
        time.sleep(0.1)
    raise AssertionError("the task never started")


def test_closing_the_stream_ends_every_process(engine: RunnerEngine, bench: Any) -> None:
    events = engine.run(RunRequest("slow.yml", bench.inventory("a", "b")))
    assert next(events).kind is EventKind.TASK_START
    wait_for_sleep()
    watch = Stopwatch()
    events.close()
    assert watch.within(8)
    assert owned_by(OwnerProcess.current()) == frozenset()
    assert not list((bench.folder / "work").glob("run-*"))


def test_ctrl_c_ends_every_process(bench: Any) -> None:
    def press() -> None:
        wait_for_sleep()
        os.kill(os.getpid(), signal.SIGINT)

    fingers = threading.Thread(target=press)
    # a shell that runs the tests in the background has them ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with bench.engine() as engine:
        fingers.start()
        with pytest.raises(KeyboardInterrupt):
            list(engine.run(RunRequest("slow.yml", bench.inventory("a"))))
    fingers.join()
    assert owned_by(OwnerProcess.current()) == frozenset()


KILLED = """
import sys
from pathlib import Path
from pai_install.engine.base import RunRequest
from pai_install.engine.runner import RunnerEngine
from pai_install.plan.model import Inventory
content, folder = map(Path, sys.argv[1:])
shared = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "my_token": "abcdefgh"}
with RunnerEngine(content, folder / "work", folder / "known_hosts") as engine:
    for event in engine.run(RunRequest("slow.yml", Inventory({}, shared, {"a": {}}))):
        print(event.kind, flush=True)
"""


def test_what_a_killed_run_left_is_cleared_by_the_next(bench: Any) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(bench.content), str(bench.folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "task_start\n"
    stat = Path(f"/proc/{child.pid}/stat").read_text()
    owner = replace(OwnerProcess.current(), pid=child.pid, started=int(stat[stat.rfind(")") + 2 :].split()[19]))
    deadline = time.monotonic() + 60
    while len(owned_by(owner)) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    child.kill()
    child.wait()
    assert owned_by(owner), "Ansible goes on when its parent is killed: that is what has to be cleared"
    (left,) = (bench.folder / "work").glob("run-*")
    with bench.engine():
        assert not left.exists()
        assert owned_by(owner) == frozenset()
    assert not list(Path("/tmp").glob(f"pai-ssh-{owner}-*"))


def test_a_machine_at_its_own_pace_waits_for_no_other(bench: Any) -> None:
    inventory = bench.inventory("slow", "broken", "quick", slow={"after": "quick"}, broken={"broken": True})
    with bench.engine() as engine:
        events = list(engine.run(RunRequest("apart.yml", inventory)))
    ends = [(event.host, event.task) for event in events if event.host and event.kind is not EventKind.TASK_START]
    # its first task goes on until the other one has ended
    assert ends.index(("quick", "End")) < ends.index(("slow", "Take a while"))
    assert ("slow", "End") in ends
    collected = HostResults(("slow", "broken", "quick"), Redactor(()))
    for event in events:
        collected.add(event)
    results = collected.results(complete=True)
    assert {host: result.status.value for host, result in results.items()} == {
        "slow": "ok",
        "broken": "failed",
        "quick": "ok",
    }
