"""Calls over SSH: a stand-in for ssh runs here what would run on the control plane."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import SecretStr
from syrupy.assertion import SnapshotAssertion

from pai_install.cluster import remote
from pai_install.cluster.client import ApiError, NoClusterError
from pai_install.cluster.over_ssh import SshTransport, ssh_options, sudo_words
from pai_install.cluster.transport import Call
from pai_install.errors import ExitCode
from pai_install.site.model import Machine, Ssh
from tests.errors import raises

SECRET = "planted;secret"
READ = Call(("get", "nodes"), reads=True, timeout_s=5)
WRITE = Call(("patch", "node", "a"), "words", timeout_s=5)

SSH = r"""
import json, os, subprocess, sys
here = os.path.dirname(os.path.abspath(__file__))
argv = sys.argv[1:]
with open(here + "/ssh.log", "a") as log:
    log.write(json.dumps(argv) + "\n")
if "-O" in argv:
    sys.exit(0)
host, command = argv[argv.index("--") - 1], argv[-1]
how = json.load(open(here + "/hosts.json"))[host]
if how == "down":
    sys.stderr.write("ssh: connect to host %s port 22: No route to host\n" % host)
    sys.exit(255)
if how == "noise":
    print("Welcome!", flush=True)
if how == "lost":
    print("pai-install-begin", flush=True)
    sys.stderr.write("client_loop: send disconnect: Broken pipe\n")
    sys.exit(255)
if how == "garbage":
    print("pai-install-begin\npai-install-end?not base64?", flush=True)
    sys.exit(0)
environment = dict(os.environ, FAKE_HOW=how)
command = command.replace("/usr/local/bin/kubectl", here + "/kubectl")
sys.exit(subprocess.call(["/bin/sh", "-c", command], env=environment))
"""
KUBECTL = r"""
import os, sys, time
how, argv = os.environ["FAKE_HOW"], sys.argv[3:]
if how == "refused":
    sys.exit("The connection to the server 10.0.0.1:7443 was refused - did you specify the right host or port?")
if how == "overloaded":
    sys.exit("Error from server (Timeout): etcdserver: request timed out")
if argv[0] == "fail":
    sys.exit("Error from server (Forbidden): no")
if argv[0] == "sleep":
    time.sleep(30)
if argv[0] == "huge":
    sys.stdout.write("x" * (8 << 20))
elif argv[0] == "bytes":
    sys.stdout.buffer.write(b"\xff\xfe")
elif argv[0] == "endless":
    for number in range(10**9):
        print(number, flush=True)
        time.sleep(0.01)
else:
    print(how, *argv, sys.stdin.read(), flush=True)
"""
SUDO = f"""#!/bin/sh
if [ "$1" = -S ]; then
  read -r word
  [ "$word" = '{SECRET}' ] || {{ echo 'sudo: 1 incorrect password attempt' >&2; exit 1; }}
  shift 4
else
  shift 2
fi
exec "$@"
"""


def machine(name: str, *, user: str = "root", password: str = "", key: Path | None = None) -> Machine:
    """A control plane whose address is its name."""
    secret = SecretStr(password) if password else None
    return Machine(
        hostname=name,
        hostip=name,
        sku="cpu",
        roles=frozenset({"control-plane"}),
        ssh=Ssh(user=user, password=secret, key_file=key),
    )


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, first on PATH, with stand-ins for ssh, kubectl and sudo."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in (
        ("ssh", f"#!{sys.executable}\n{SSH}"),
        ("kubectl", f"#!{sys.executable}\n{KUBECTL}"),
        ("sudo", SUDO),
    ):
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


Make = Callable[..., SshTransport]


@pytest.fixture
def transport(programs: Path, tmp_path: Path) -> Iterator[Make]:
    """transport(first="down", second="up"): control planes that behave so."""
    with ExitStack() as stack:

        def make(*machines: Machine, **hosts: str) -> SshTransport:
            (programs / "hosts.json").write_text(json.dumps(hosts))
            found = machines or tuple(machine(name) for name in hosts)
            return SshTransport(found, tmp_path / "known hosts", stack)

        yield make


def asked(programs: Path) -> list[str]:
    """The hosts that ssh was started for."""
    rows = [json.loads(line) for line in (programs / "ssh.log").read_text().splitlines()]
    return [row[row.index("--") - 1] for row in rows if "-O" not in row]


def test_calls_are_made_in_one_trip_and_in_order(transport: Make, programs: Path, snapshot: SnapshotAssertion) -> None:
    reply = transport(one="up").run([READ, WRITE])
    assert reply.host == "one"
    assert [answer.stdout for answer in reply.answers] == snapshot
    assert asked(programs) == ["one"]


def test_nothing_of_the_login_users_home_is_run_by_root(
    transport: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program starts there, as root: a home may lie on NFS, where other machines write and root may not read."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "json.py").write_text("raise SystemExit('of the home')")
    monkeypatch.chdir(home)
    assert transport(machine("one"), one="up").run([READ]).host == "one"


def test_the_first_failure_ends_a_trip_unless_it_may_fail(transport: Make) -> None:
    door = transport(one="up")
    fails, may = Call(("fail",)), Call(("fail",), may_fail=True)
    assert [answer.returncode for answer in door.run([READ, fails, READ]).answers] == [0, 1]
    assert [answer.returncode for answer in door.run([may, READ]).answers] == [1, 0]


def test_the_next_control_plane_is_asked_and_then_first(transport: Make, programs: Path) -> None:
    door = transport(one="down", two="refused", three="up")
    assert door.run([WRITE]).host == "three"
    assert door.run([WRITE]).host == "three"
    assert asked(programs) == ["one", "two", "three", "three"]


def test_without_any_every_reason_is_told(transport: Make, snapshot: SnapshotAssertion) -> None:
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        transport(one="down", two="refused").run([READ])
    assert error.value.down["one"] == snapshot
    assert "was refused" in error.value.down["two"]
    assert error.value.exit_code is ExitCode.UNREACHABLE


def test_what_another_program_prints_before_does_not_matter(transport: Make) -> None:
    assert transport(one="noise").run([READ]).answers[0].ok


@pytest.mark.parametrize("how", ["lost", "garbage"])
def test_a_lost_answer_is_asked_again_elsewhere_only_when_nothing_was_changed(transport: Make, how: str) -> None:
    assert transport(one=how, two="up").run([READ]).host == "two"
    with raises("connection-lost"):
        transport(one=how, two="up").run([READ, WRITE])


def test_a_write_that_may_have_been_done_is_not_made_twice(transport: Make) -> None:
    assert transport(one="overloaded", two="up").run([READ]).host == "two"
    assert transport(one="overloaded", two="up").run([WRITE]).host == "one"


def test_after_the_first_answer_nobody_else_is_asked(transport: Make) -> None:
    reply = transport(one="up", two="up").run([READ, Call(("fail",))])
    assert (reply.host, len(reply.answers)) == ("one", 2)


def test_a_call_ends_after_its_time(transport: Make) -> None:
    began = time.monotonic()
    slow = Call(("sleep",), may_fail=True, timeout_s=0.5)
    reply = transport(one="up").run([slow])
    assert (reply.answers[0].returncode, reply.answers[0].stderr) == (None, "no answer within 0.5 s")
    assert time.monotonic() - began < 10


def test_long_answers_come_whole_and_too_long_ones_are_refused(
    transport: Make, programs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert len(transport(one="up").run([Call(("huge",))]).answers[0].stdout) == 8 << 20
    small = tmp_path / "remote.py"
    small.write_text(Path(remote.__file__).read_text().replace("256 << 20", "1 << 20"))
    monkeypatch.setattr(remote, "__file__", str(small))
    answer = transport(one="up").run([Call(("huge",))]).answers[0]
    assert (answer.returncode, answer.stdout, answer.stderr) == (None, "", "the answer has more than 1 MiB")


def test_bytes_that_are_no_text_are_replaced(transport: Make) -> None:
    assert transport(one="up").run([Call(("bytes",))]).answers[0].stdout == "\ufffd\ufffd"


def test_a_machine_without_kubectl_is_no_control_plane_yet(
    transport: Make, programs: Path, snapshot: SnapshotAssertion
) -> None:
    (programs / "kubectl").unlink()
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        transport(one="up").run([WRITE])
    assert error.value.down["one"] == snapshot


# Streams


def test_lines_come_as_they_are_printed_and_the_program_there_ends_with_us(transport: Make) -> None:
    lines = transport(one="down", two="up").lines(Call(("endless",), reads=True))
    assert [next(lines), next(lines)] == ["0", "1"]
    began = time.monotonic()
    lines.close()
    assert time.monotonic() - began < 10


def test_a_stream_that_is_refused_is_an_error(transport: Make) -> None:
    with raises("api-request-refused", kind=ApiError) as error:
        list(transport(one="up").lines(Call(("fail",), reads=True)))
    assert error.value.reason == "Forbidden"
    with raises("no-control-plane-answers", kind=NoClusterError):
        list(transport(one="refused").lines(READ))


# The site's own connection settings


def test_a_key_is_used_without_questions() -> None:
    words = ssh_options(machine("one", user="pai", key=Path("/keys/my key")), ["StrictHostKeyChecking=yes"])
    assert {'IdentityFile="/keys/my key"', "BatchMode=yes", "StrictHostKeyChecking=yes"} <= set(words)
    assert words[-4:] == ["-p", "22", "-l", "pai"]


def test_a_password_reaches_sudo_and_stands_nowhere_else(
    transport: Make, programs: Path, snapshot: SnapshotAssertion
) -> None:
    door = transport(machine("one", user="pai", password=SECRET), one="up")
    assert door.run([WRITE]).answers[0].stdout == snapshot
    assert next(door.lines(Call(("endless",), reads=True))) == "0"
    assert SECRET not in (programs / "ssh.log").read_text()
    assert not any(SECRET in path.read_text() for path in door.folder.iterdir() if path.is_file())
    environment = door.environment(machine("one", password=SECRET))
    assert environment["SSH_ASKPASS_REQUIRE"] == "force"
    assert os.access(environment["SSH_ASKPASS"], os.X_OK)


def test_sudo_that_asks_for_no_password_does_not_hand_it_on(
    transport: Make, programs: Path, snapshot: SnapshotAssertion
) -> None:
    (programs / "sudo").write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    door = transport(machine("one", user="pai", password=SECRET), one="up")
    assert door.run([WRITE]).answers[0].stdout == snapshot


def test_a_wrong_password_is_told(transport: Make) -> None:
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        transport(machine("one", user="pai", password="wrong"), one="up").run([WRITE])
    assert error.value.down == {"one": "sudo: 1 incorrect password attempt"}


@pytest.mark.parametrize(
    ("user", "password", "words"),
    [("root", "x", []), ("pai", "", ["sudo", "-n", "--"]), ("pai", "x", ["sudo", "-S", "-p", "", "--"])],
)
def test_root_needs_no_sudo(user: str, password: str, words: list[str]) -> None:
    assert sudo_words(machine("one", user=user, password=password))[0] == words


def test_connections_are_ended(programs: Path, tmp_path: Path) -> None:
    (programs / "hosts.json").write_text('{"one": "up"}')
    with ExitStack() as stack:
        door = SshTransport([machine("one")], tmp_path / "known_hosts", stack)
        door.run([READ])
        folder = door.folder
        assert folder.is_dir()
    assert not folder.exists()
    assert '"-O", "exit"' in (programs / "ssh.log").read_text()


def test_who_is_never_asked_is_never_connected(programs: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        SshTransport([machine("one")], tmp_path / "known_hosts", stack)
    assert not (programs / "ssh.log").exists()


# kubectl as if it ran here

ATTACHED = """
import sys
from contextlib import ExitStack
from pathlib import Path
from pydantic import SecretStr
from pai_install.cluster.over_ssh import SshTransport
from pai_install.site.model import Machine, Ssh
password = SecretStr(sys.argv[1]) if sys.argv[1] else None
one = Machine(hostname="one", hostip="one", sku="cpu", ssh=Ssh(user="pai", password=password))
with ExitStack() as stack:
    sys.exit(SshTransport([one], Path("known_hosts"), stack).attach(sys.argv[2:], terminal=False))
"""


@pytest.mark.parametrize("password", ["", SECRET])
@pytest.mark.parametrize("asks", [True, False])
def test_input_output_and_exit_status_are_those_of_kubectl(programs: Path, password: str, asks: bool) -> None:
    (programs / "hosts.json").write_text('{"one": "up"}')
    if not asks:
        (programs / "sudo").write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n')
    words = [sys.executable, "-c", ATTACHED, password]
    done = subprocess.run([*words, "apply", "-f", "-"], input="my words", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "up apply -f - my words\n"), done.stderr
    failed = subprocess.run([*words, "fail"], input="", capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr) == (1, "Error from server (Forbidden): no\n")
