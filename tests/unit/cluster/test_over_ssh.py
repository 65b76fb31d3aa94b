"""The API over SSH: a stand-in for ssh runs the relay here, with TLS to stand-ins for API servers."""

from __future__ import annotations

import base64
import json
import os
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pydantic import SecretStr

from pai_install.cluster.client import NO_ANSWER, ApiError, LogWindow, NoClusterError, Select
from pai_install.cluster.over_http import HttpClient
from pai_install.cluster.over_ssh import SshLogins, ssh_options, sudo_words
from pai_install.errors import ExitCode
from pai_install.kube.model import Ref
from pai_install.site.model import Machine, Ssh
from tests.errors import raises

SECRET = "planted;secret"
NOTE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
NODES = Select(("nodes",))

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
command = command.replace("/etc/kubernetes/admin.conf", here + "/" + how + ".conf")
command = command.replace("/usr/local/bin/kubectl", here + "/kubectl")
sys.exit(subprocess.call(["/bin/sh", "-c", command], env=dict(os.environ, FAKE_HOW=how)))
"""
KUBECTL = r"""
import os, sys
if sys.argv[3] == "fail":
    sys.exit("Error from server (Forbidden): no")
print(os.environ["FAKE_HOW"], *sys.argv[3:], sys.stdin.read(), flush=True)
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


class ApiServer(BaseHTTPRequestHandler):
    """An API server that behaves as the name of its kubeconfig says."""

    protocol_version = "HTTP/1.1"
    how = "up"
    asked: list[str]

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def answer(self) -> None:
        """Answers any request."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.asked.append(f"{self.command} {self.path.partition('?')[0]}")
        if self.how == "lost":
            self.close_connection = True
        elif self.how == "overloaded":
            self.notify(504, {"kind": "Status", "reason": "Timeout", "message": "etcdserver: request timed out"})
        elif self.how == "starting":
            why = 'nodes is forbidden: User "kubernetes-admin" cannot list resource "nodes"'
            self.notify(403, {"kind": "Status", "reason": "Forbidden", "message": why})
        elif "follow=true" in self.path:
            self.endless()
        else:
            item = {"metadata": {"name": self.how}, "spec": {"containers": [{"name": "main"}]}}
            self.notify(200, {"kind": "NodeList", "items": [item], **item})

    do_GET = do_POST = do_PATCH = answer  # noqa: N815 - names of http.server

    def notify(self, status: int, body: object) -> None:
        """Answers with JSON."""
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def endless(self) -> None:
        """Sends a line from time to time."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for number in range(10**6):
                line = f"{number}\n".encode()
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
                time.sleep(0.01)
        except OSError:
            self.asked.append("gone")
            self.close_connection = True


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificate of the API servers and its key, which clients have as well."""
    folder = tmp_path_factory.mktemp("authority")
    words = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-subj", "/CN=here")
    names = ("-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    subprocess.run(["openssl", *words, *names], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def programs(tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder, first on PATH, with stand-ins for ssh, kubectl, and sudo, and a kubeconfig of each API server."""
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
    certificate, key = (base64.b64encode((authority / name).read_bytes()).decode() for name in ("crt", "key"))
    with ExitStack() as stack:
        for how in ("up", "noise", "lost", "overloaded", "starting", "refused"):
            port = api_server(stack, authority, how) if how != "refused" else 1
            (folder / f"{how}.conf").write_text(
                f"    certificate-authority-data: {certificate}\n    server: https://127.0.0.1:{port}\n"
                f"    client-certificate-data: {certificate}\n    client-key-data: {key}\n"
            )
        ApiServer.asked = []
        yield folder


def api_server(stack: ExitStack, authority: Path, how: str) -> int:
    """Starts an API server that demands a client certificate, and returns its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type(how, (ApiServer,), {"how": how}))
    server.daemon_threads, server.handle_error = True, lambda *_: None  # type: ignore[method-assign]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "crt", authority / "key")
    context.load_verify_locations(authority / "crt")
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return server.server_port


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


Make = Callable[..., HttpClient]


@pytest.fixture
def client_of(programs: Path, tmp_path: Path) -> Iterator[Make]:
    """client_of(first="down", second="up"): a client of control planes that behave so."""
    with ExitStack() as stack:

        def make(*machines: Machine, **hosts: str) -> HttpClient:
            (programs / "hosts.json").write_text(json.dumps(hosts))
            found = machines or tuple(machine(name) for name in hosts)
            client = HttpClient(SshLogins(found, tmp_path / "known hosts", stack).connections)
            stack.callback(client.close)
            return client

        yield make


def logins(programs: Path) -> list[str]:
    """The hosts that ssh was started for."""
    rows = [json.loads(line) for line in (programs / "ssh.log").read_text().splitlines()]
    return [row[row.index("--") - 1] for row in rows if "-O" not in row]


def server_of(client: HttpClient) -> str:
    """How the API server behaves that answers."""
    return str(client.list(NODES)[0][0]["metadata"]["name"])


def test_requests_share_a_login(client_of: Make, programs: Path) -> None:
    client = client_of(one="up")
    assert server_of(client) == server_of(client) == "up"
    client.get([Ref("node", "a"), Ref("node", "b")])
    assert logins(programs) == ["one"]


def test_nothing_of_the_login_users_home_is_run_by_root(
    client_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay starts there, as root: a home may lie on NFS, where other machines write and root may not read."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "base64.py").write_text("raise SystemExit('of the home')")
    monkeypatch.chdir(home)
    assert server_of(client_of(one="up")) == "up"


def test_the_next_control_plane_is_asked_and_then_first(client_of: Make, programs: Path) -> None:
    client = client_of(one="down", two="refused", three="up")
    client.create([NOTE])
    client.create([NOTE])
    assert logins(programs) == ["one", "two", "three"]


def test_without_any_every_reason_is_told(client_of: Make) -> None:
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        client_of(one="down", two="refused").create([NOTE])
    assert error.value.down["one"] == "ssh: connect to host one port 22: No route to host"
    assert "Connection refused" in error.value.down["two"]
    assert error.value.exit_code is ExitCode.UNREACHABLE


def test_a_machine_without_kubeconfig_is_no_control_plane_yet(client_of: Make, programs: Path) -> None:
    (programs / "up.conf").unlink()
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        client_of(one="up").list(NODES)
    assert "No such file" in error.value.down["one"]


def test_what_another_program_prints_before_does_not_matter(client_of: Make) -> None:
    assert server_of(client_of(one="noise")) == "noise"


def test_a_read_goes_elsewhere_and_a_change_is_not_made_twice(client_of: Make) -> None:
    for how in ("lost", "overloaded"):
        assert server_of(client_of(one=how, two="up")) == "up"
        ApiServer.asked.clear()
        with raises("api-request-refused", kind=ApiError) as error:
            client_of(one=how, two="up").create([NOTE])
        assert error.value.reason == NO_ANSWER
        assert ApiServer.asked == ["POST /api/v1/namespaces/b/configmaps"]


def test_an_api_server_that_has_just_started_is_none_yet(client_of: Make) -> None:
    """Its words, seen after the runtime of the only control plane was restarted: the administrator may do all."""
    client = client_of(one="starting", two="up")
    client.create([NOTE])
    assert server_of(client) == "up"
    with raises("no-control-plane-answers", kind=NoClusterError):
        client_of(one="starting").create([NOTE])


def test_a_stream_comes_as_it_is_sent_and_ends_with_us(client_of: Make) -> None:
    client = client_of(one="down", two="up")
    with closing(client.log_lines(Ref("pod", "p", "b"), LogWindow(follow=True))) as lines:  # type: ignore[type-var]
        assert [next(lines), next(lines)] == ["0", "1"]
    end = time.monotonic() + 60
    while "gone" not in ApiServer.asked:
        assert time.monotonic() < end
        time.sleep(0.05)


# The site's own connection settings


def test_a_key_is_used_without_questions() -> None:
    words = ssh_options(machine("one", user="pai", key=Path("/keys/my key")), ["StrictHostKeyChecking=yes"])
    assert {'IdentityFile="/keys/my key"', "BatchMode=yes", "StrictHostKeyChecking=yes"} <= set(words)
    assert words[-4:] == ["-p", "22", "-l", "pai"]


def test_a_password_reaches_sudo_and_stands_nowhere_else(programs: Path, tmp_path: Path) -> None:
    (programs / "hosts.json").write_text('{"one": "up"}')
    with ExitStack() as stack:
        planes = SshLogins([machine("one", user="pai", password=SECRET)], tmp_path / "known hosts", stack)
        client = HttpClient(planes.connections)
        assert server_of(client) == "up"
        assert SECRET not in (programs / "ssh.log").read_text()
        assert not any(SECRET in path.read_text() for path in planes.folder.iterdir() if path.is_file())
        environment = planes.environment(machine("one", password=SECRET))
        assert environment["SSH_ASKPASS_REQUIRE"] == "force"
        assert os.access(environment["SSH_ASKPASS"], os.X_OK)
        client.close()


def test_sudo_that_asks_for_no_password_does_not_hand_it_on(client_of: Make, programs: Path) -> None:
    (programs / "sudo").write_text('#!/bin/sh\nshift 4\nexec "$@"\n')
    assert server_of(client_of(machine("one", user="pai", password=SECRET), one="up")) == "up"


def test_a_wrong_password_is_told(client_of: Make) -> None:
    with raises("no-control-plane-answers", kind=NoClusterError) as error:
        client_of(machine("one", user="pai", password="wrong"), one="up").create([NOTE])
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
        planes = SshLogins([machine("one")], tmp_path / "known_hosts", stack)
        client = HttpClient(planes.connections)
        client.list(NODES)
        folder = planes.folder
        assert folder.is_dir()
        client.close()
    assert not folder.exists()
    assert '"-O", "exit"' in (programs / "ssh.log").read_text()


def test_who_is_never_asked_is_never_connected(programs: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        assert SshLogins([machine("one")], tmp_path / "known_hosts", stack).connections
    assert not (programs / "ssh.log").exists()


# kubectl as if it ran here

ATTACHED = """
import sys
from contextlib import ExitStack
from pathlib import Path
from pydantic import SecretStr
from pai_install.cluster.over_ssh import SshLogins
from pai_install.site.model import Machine, Ssh
password = SecretStr(sys.argv[1]) if sys.argv[1] else None
one = Machine(hostname="one", hostip="one", sku="cpu", ssh=Ssh(user="pai", password=password))
with ExitStack() as stack:
    sys.exit(SshLogins([one], Path("known_hosts"), stack).attach(sys.argv[2:], terminal=False))
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
