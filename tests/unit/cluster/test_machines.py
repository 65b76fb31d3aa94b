"""Reading programs on machines: the stand-in for ssh runs here what would run there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_install.agents.common.ledger import Hold, line_of, read
from pai_install.app.log_sources import SERVICES, LogService, Window, service_source
from pai_install.app.usage import _READ
from pai_install.cluster.machines import MachineError, SshMachines
from pai_install.cluster.over_ssh import SshLogins
from pai_install.errors import ExitCode
from tests.unit.cluster.test_over_ssh import authority, machine, programs

__all__ = ["authority", "programs"]


@pytest.fixture
def machines(programs: Path, tmp_path: Path) -> Iterator[SshMachines]:
    (programs / "hosts.json").write_text(json.dumps({"up": "up", "off": "down"}))
    with ExitStack() as stack:
        found = {name: machine(name, user="pai") for name in ("up", "off")}
        yield SshMachines(found, SshLogins(tuple(found.values()), tmp_path / "known_hosts", stack))


def test_lines_of_a_program(machines: SshMachines) -> None:
    assert list(machines.lines("up", ("sh", "-c", "echo one; echo; echo 'two  words'"))) == ["one", "", "two  words"]


def test_words_are_no_shell_code(machines: SshMachines, tmp_path: Path) -> None:
    word = f"$(touch {tmp_path}/run); `id` '\" \n"
    assert list(machines.lines("up", ("printf", "%s", word))) == word.split("\n")[:1]
    assert not (tmp_path / "run").exists()


def test_unreachable_machine(machines: SshMachines) -> None:
    with pytest.raises(MachineError) as error:
        list(machines.lines("off", ("true",)))
    assert (error.value.host, error.value.unreachable, error.value.exit_code) == ("off", True, ExitCode.UNREACHABLE)
    assert "No route to host" in error.value.message


@pytest.mark.parametrize("program", [("sh", "-c", "echo a; echo 'no such unit' >&2; exit 3"), ("no-such-program",)])
def test_failed_program(machines: SshMachines, program: tuple[str, ...]) -> None:
    with pytest.raises(MachineError) as error:
        list(machines.lines("up", program))
    assert not error.value.unreachable
    assert error.value.exit_code is ExitCode.STEP_FAILED


def test_closing_ends_the_program(machines: SshMachines, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = (
        f"import os, time; open({str(file)!r}, 'w').write(str(os.getpid())); print('on', flush=True); time.sleep(99)"
    )
    lines = machines.lines("up", ("python3", "-c", script))
    assert next(lines) == "on"
    lines.close()
    pid, end = int(file.read_text()), time.monotonic() + 20
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_files_of_the_ledger_with_a_torn_line_between(machines: SshMachines, tmp_path: Path) -> None:
    first, second = (line_of(Hold(uid, 1, 1_790_000_000)) for uid in ("a", "b"))
    (tmp_path / "1.jsonl").write_text(f'{first}\n{{"torn')
    (tmp_path / "3.jsonl").write_text(f"{second}\n")
    paths = [str(tmp_path / f"{number}.jsonl") for number in (1, 2, 3)]
    found = read(machines.lines("up", ("sh", "-c", _READ, "sh", *paths)))
    assert (set(found.holds), found.damaged) == ({"a", "b"}, 1)


def test_log_of_a_container_and_its_errors(
    machines: SshMachines,
    programs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crictl = programs / "crictl"
    crictl.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = ps ]; then [ "$6" = "^etcd$" ] && echo 0a1b; exit 0; fi\n'
        'echo "$@"; echo "to standard error" >&2\n'
    )
    crictl.chmod(0o755)
    from pai_install.app import log_sources  # noqa: PLC0415

    monkeypatch.setattr(log_sources, "_CRICTL", log_sources._CRICTL.replace("/usr/local/bin/crictl", str(crictl)))
    window = Window(lines=5, since=0, follow=True)
    found = list(service_source(machines, "up", SERVICES["etcd"], window).lines())
    assert found == ["logs --tail 5 --since 1970-01-01T00:00:00Z --follow 0a1b", "to standard error"]
    with pytest.raises(MachineError, match="no container other"):
        list(service_source(machines, "up", LogService("all", container="other"), window).lines())
