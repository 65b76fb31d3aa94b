"""The page of a new job: checked, simulated, and submitted as the caller, without scripts."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from ipaddress import IPv4Network
from threading import Thread
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.cluster.client import ApiError
from pai_install.console.code_transfer import CodePort
from pai_install.console.pages.new_job import MOST_TYPED
from pai_install.console.services import ConsoleServices
from pai_install.console.settings import CodeSettings
from pai_install.console.sign_in.forms import form_token
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.jobs.code_pod import ABSENT, NOT_EQUAL, NOT_WRITTEN, PRESENT
from pai_install.kube.model import Ref
from tests.unit.app.test_code_upload import zipped
from tests.unit.console.conftest import eventually, signed_in
from tests.unit.console.live import LiveCluster
from tests.unit.console.pages.test_job_form import FORM
from tests.unit.console.pages.test_jobs import shown
from tests.unit.console.pages.test_waiting import rows, used
from tests.unit.console.routes.test_cluster_views import node
from tests.unit.console.routes.test_jobs import FILE, named, train

__all__ = ["train", "used"]
SUBMIT = '<button class="main" name="do" value="submit">'


def send(web: TestClient, who: str, typed: dict[str, str], origin: str = "https://testserver", /, **kept: str) -> Any:
    headers = {**signed_in(who), "Cookie": f"{COOKIE}=a-session", "Origin": origin}
    return web.post("/jobs/new", data={"form": form_token("a-session"), **typed, **kept}, headers=headers)


@pytest.fixture
def idle(web: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> TestClient:
    """A console of a cluster without jobs."""
    kubernetes.put(*(node(name, 8) for name in ("g1", "g2", "g3")))
    eventually(lambda: len(services.model.nodes()) == 3)
    return web


def made(kubernetes: LiveCluster) -> list[str]:
    return [ref.name for ref in kubernetes.objects if ref.kind == "jobset"]


def test_the_form_offers_what_the_caller_may_use(idle: TestClient) -> None:
    page = shown(idle, "/jobs/new", "bob")
    assert "<option>default</option>" in page
    assert "research" not in page
    assert "team" not in page
    assert 'name="storage.team"' in shown(idle, "/jobs/new", "alice")
    assert '<select name="group"' in shown(idle, "/jobs/new", "carol")
    assert "<option selected>research</option>" in shown(idle, "/jobs/new?vc=research", "alice")


def test_a_job_is_checked_before_it_is_submitted(idle: TestClient, kubernetes: LiveCluster) -> None:
    answer = send(idle, "alice", FORM, do="check")
    assert answer.status_code == HTTPStatus.OK
    assert "it starts as soon as a node has room" in answer.text
    assert SUBMIT in answer.text
    assert "uri: example.com/train:1" in answer.text
    (quota,) = rows(answer.text, "Quota of research")
    assert quota[:3] == ["a100", "8", "16"]
    assert made(kubernetes) == []
    assert [name for name, _ in kubernetes.calls if name == "dry_run"]
    # the values stay
    assert 'name="r0.image" value="example.com/train:1"' in answer.text


def test_a_job_is_submitted_as_its_caller(idle: TestClient, kubernetes: LiveCluster) -> None:
    answer = send(idle, "alice", FORM, do="submit")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs/alice~bert")
    labels = kubernetes.objects[Ref("jobset", "bert", "vision-1")]["metadata"]["labels"]
    assert labels["pai-install/user"] == "alice"
    assert "example.com/train:1" in shown(idle, "/jobs/alice~bert")
    again = send(idle, "alice", FORM, do="submit")
    assert again.status_code == HTTPStatus.CONFLICT
    assert "the job bert exists" in again.text


def test_wrong_values_have_their_place(idle: TestClient, kubernetes: LiveCluster) -> None:
    answer = send(idle, "alice", {**FORM, "r0.instances": "two", "name": ""}, do="check")
    found = rows(answer.text, "Problems of the file")
    assert {row[1] for row in found} >= {"name", "taskRoles.worker.instances"}
    assert SUBMIT not in answer.text
    answer = send(idle, "alice", {**FORM, "r0.instances": "two"}, do="submit")
    assert answer.status_code == HTTPStatus.BAD_REQUEST
    assert made(kubernetes) == []


def test_too_much_can_never_run(idle: TestClient) -> None:
    answer = send(idle, "alice", {**FORM, "r0.gpus": "16"}, do="check")
    assert "Problems of the file" in answer.text
    assert SUBMIT not in answer.text


def test_a_full_quota_shows_its_holders(used: TestClient) -> None:
    answer = send(used, "alice", {**FORM, "r0.instances": "3", "r0.gpus": "8"}, do="check")
    holders = rows(answer.text, "Holders of this quota")
    assert [row[0] for row in holders] == ["holds", "jobs of other groups: 1"]
    assert "bob" not in answer.text
    assert SUBMIT in answer.text


def test_a_file(idle: TestClient, kubernetes: LiveCluster) -> None:
    page = send(idle, "alice", {"content": FILE}, do="check").text
    assert SUBMIT in page
    assert FILE.splitlines()[0] in page
    assert send(idle, "alice", {"content": FILE.replace("\n", "\r\n")}, do="submit").status_code == 303
    assert made(kubernetes) == ["train"]


@pytest.mark.parametrize("content", ["", "a: [", "- x", "\x00", "{" * 5000, "name: &a [*a]", "</textarea><script>x"])
def test_a_file_that_is_no_job(idle: TestClient, kubernetes: LiveCluster, content: str) -> None:
    for wanted in ("check", "submit", "to-file", "remove-x", "<script>"):
        answer = send(idle, "alice", {"content": content}, do=wanted)
        assert answer.status_code < 500
        assert "<script>" not in answer.text
        assert SUBMIT not in answer.text
    assert made(kubernetes) == []


def test_a_large_file_is_refused(idle: TestClient) -> None:
    assert send(idle, "alice", {"content": "é" * 600_000}, do="check").status_code in (400, 413)
    assert send(idle, "alice", {"content": "x" * 3_000_000}, do="check").status_code == 413
    fields = {**FORM, "content": "x" * 3_000_000}
    assert send_file(idle, "alice", fields, zipped({"a": b"x"}), do="check").status_code == 413
    assert send(idle, "alice", {f"f{number}": "" for number in range(500)}, do="check").status_code == 400


@pytest.mark.parametrize(
    ("who", "changes", "words"),
    [
        ("dan", {}, "dan is in no group"),
        ("bob", {}, "no group of bob may use the virtual cluster research"),
        ("alice", {"group": "nlp"}, "alice is not in the group nlp"),
        ("alice", {"cluster": "<script>"}, "&lt;script&gt;"),
    ],
)
def test_a_job_for_others(
    idle: TestClient, kubernetes: LiveCluster, who: str, changes: dict[str, str], words: str
) -> None:
    for wanted in ("check", "submit"):
        answer = send(idle, who, {**FORM, **changes}, do=wanted)
        assert words in answer.text
        assert SUBMIT not in answer.text
        assert "<script>" not in answer.text
    assert made(kubernetes) == []


def test_a_policy_of_the_cluster_has_the_last_word(idle: TestClient, kubernetes: LiveCluster) -> None:
    words = "admission webhook denied request: <b>hostNetwork</b> is not permitted"
    kubernetes.rejects = ApiError("cannot create", reason="Forbidden", details=words)
    answer = send(idle, "alice", FORM, do="check")
    assert "&lt;b&gt;hostNetwork" in answer.text
    assert SUBMIT not in answer.text
    assert send(idle, "alice", FORM, do="submit").status_code == HTTPStatus.FORBIDDEN
    assert made(kubernetes) == []


def test_forms_of_other_sites_submit_nothing(idle: TestClient, kubernetes: LiveCluster) -> None:
    for origin, token in (
        ("https://evil.example.com", form_token("a-session")),
        ("", form_token("a-session")),
        ("https://testserver", form_token("another")),
        ("https://testserver", ""),
    ):
        assert send(idle, "alice", FORM, origin, do="submit", form=token).status_code == HTTPStatus.FORBIDDEN
    assert send(idle, "no-one", FORM, do="submit").status_code == HTTPStatus.FORBIDDEN
    assert made(kubernetes) == []


def test_roles_are_added_and_removed(idle: TestClient) -> None:
    page = send(idle, "alice", FORM, do="add-role").text
    assert 'name="r1.image" value="example.com/train:1"' in page
    assert 'value="remove-1"' in page
    second = {"r1.name": "ps", "r1.image": "other"}
    page = send(idle, "alice", {**FORM, **second}, do="remove-0").text
    assert 'name="r0.name" value="ps"' in page
    assert 'name="r1.name"' not in page
    page = send(idle, "alice", FORM, do="to-file").text
    assert re.search(r"<textarea name=\"content\".*protocolVersion: 2", page, re.DOTALL)


def test_a_job_again(train: TestClient) -> None:
    assert 'href="/jobs/new?from=alice~train"' in shown(train, "/jobs/alice~train")
    assert "example.com/train:1" in shown(train, "/jobs/new?from=alice~train")
    for who in ("bob", "dan"):
        answer = train.get("/jobs/new?from=alice~train", headers=signed_in(who))
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "example.com" not in answer.text
    for name in ("x", "~", "%00~%00", "a" * 5000):
        assert train.get(f"/jobs/new?from={name}", headers=signed_in("alice")).status_code == HTTPStatus.NOT_FOUND


def test_secrets_of_a_job_are_not_kept(idle: TestClient, services: ConsoleServices) -> None:
    content = named(FILE, "hidden") + "secrets: {token: abc}\n"
    assert send(idle, "alice", {"content": content}, do="submit").status_code == 303
    eventually(lambda: len(services.model.jobs) == 1)
    page = shown(idle, "/jobs/new?from=alice~hidden")
    assert "abc" not in page
    assert "Write them in place of" in page


def test_submissions_have_a_rate(idle: TestClient, services: ConsoleServices) -> None:
    services.rates.rates["submit"] = (1, 1000.0)
    assert send(idle, "alice", FORM, do="check").status_code == HTTPStatus.OK
    assert send(idle, "alice", FORM, do="submit").status_code == HTTPStatus.TOO_MANY_REQUESTS


def send_file(web: TestClient, who: str, typed: dict[str, str], archive: bytes, **kept: str) -> Any:
    """Sends the form as a browser does it with a file."""
    headers = {**signed_in(who), "Cookie": f"{COOKIE}=a-session", "Origin": "https://testserver"}
    data = {"form": form_token("a-session"), **typed, **kept}
    return web.post("/jobs/new", data=data, files={"code": ("code.zip", archive)}, headers=headers)


def test_code_is_unpacked_in_the_job(idle: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    archive = zipped({"train.py": b"print(1)"})
    checked = send_file(idle, "alice", FORM, archive, do="check")
    assert SUBMIT in checked.text
    assert "Select the code again" in checked.text
    assert made(kubernetes) == []
    assert send_file(idle, "alice", FORM, archive, do="submit").status_code == HTTPStatus.SEE_OTHER
    kept = kubernetes.objects[Ref("configmap", "bert-code-part-00", "vision-1")]
    assert kept["metadata"]["labels"]["pai-install/user"] == "alice"
    digest = kubernetes.objects[Ref("jobset", "bert", "vision-1")]["metadata"]["annotations"]["pai-install/code"]
    eventually(lambda: len(services.model.jobs) == 1)
    assert digest in shown(idle, "/jobs/alice~bert")
    page = shown(idle, "/jobs/new?from=alice~bert")
    assert re.search(r'name="keep-code" value="yes" checked', page)
    assert 'name="code-of" value="alice~bert"' in page


def test_a_changed_job_keeps_its_code(idle: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    assert send_file(idle, "alice", FORM, zipped({"a": b"x"}), do="submit").status_code == HTTPStatus.SEE_OTHER
    eventually(lambda: len(services.model.jobs) == 1)
    again = {**FORM, "name": "again", "code-of": "alice~bert", "keep-code": "yes"}
    assert 'name="keep-code" value="yes" checked' in send(idle, "alice", again, do="check").text
    assert send(idle, "alice", again, do="submit").status_code == HTTPStatus.SEE_OTHER
    first, second = (
        kubernetes.objects[Ref("jobset", name, "vision-1")]["metadata"]["annotations"]["pai-install/code"]
        for name in ("bert", "again")
    )
    assert first == second
    without = {name: value for name, value in {**again, "name": "without"}.items() if name != "keep-code"}
    assert send(idle, "alice", without, do="submit").status_code == HTTPStatus.SEE_OTHER
    notes = kubernetes.objects[Ref("jobset", "without", "vision-1")]["metadata"]["annotations"]
    assert "pai-install/code" not in notes


def test_the_code_of_a_job_that_is_not_shown_is_refused(
    idle: TestClient, services: ConsoleServices, kubernetes: LiveCluster
) -> None:
    assert send_file(idle, "alice", FORM, zipped({"a": b"x"}), do="submit").status_code == HTTPStatus.SEE_OTHER
    eventually(lambda: len(services.model.jobs) == 1)
    for name in ("alice~other", "<script>", "bob~bert"):
        again = {**FORM, "name": "again", "code-of": name, "keep-code": "yes"}
        answer = send(idle, "alice", again, do="submit")
        assert answer.status_code == HTTPStatus.NOT_FOUND
        assert "<script>" not in answer.text
    assert made(kubernetes) == ["bert"]


def test_a_form_without_a_file_has_no_code(idle: TestClient, kubernetes: LiveCluster) -> None:
    assert send_file(idle, "alice", FORM, b"", do="submit").status_code == HTTPStatus.SEE_OTHER
    (job,) = [one for ref, one in kubernetes.objects.items() if ref.kind == "jobset"]
    assert "pai-install/code" not in job["metadata"]["annotations"]


def test_a_hostile_archive_is_refused(idle: TestClient, kubernetes: LiveCluster) -> None:
    for archive in (zipped({"../../evil": b"x"}), b"<script>", zipped({"a": bytes(40_000_000)})):
        answer = send_file(idle, "alice", FORM, archive, do="submit")
        assert answer.status_code == HTTPStatus.BAD_REQUEST
        assert "cannot read the archive" in answer.text
        assert "<script>" not in answer.text
    assert send_file(idle, "alice", FORM, b"x" * 20_000_000, do="check").status_code == 413
    assert made(kubernetes) == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"x"),
        ("multipart/form-data; boundary=", b"--\r\n"),
        ("multipart/form-data; boundary=a", b"--a\r\nContent-Disposition: form-data; name=form\r\n\r\nx"),
        ("multipart/form-data; boundary=a", b"--a\r\n" + b"X: y\r\n" * 1000 + b"\r\n--a--"),
        ("multipart/form-data; boundary=a", b'--a\r\nContent-Disposition: form-data; name="\xff"\r\n\r\nx\r\n--a--'),
        ("multipart/form-data; boundary=" + "a" * 10_000, b"--a"),
    ],
)
def test_a_broken_form_is_refused(idle: TestClient, kubernetes: LiveCluster, kind: str, body: bytes) -> None:
    headers = {**signed_in("alice"), "Cookie": f"{COOKIE}=a-session", "Origin": "https://testserver"}
    answer = idle.post("/jobs/new", content=body, headers={**headers, "Content-Type": kind})
    assert answer.status_code in {HTTPStatus.BAD_REQUEST, HTTPStatus.FORBIDDEN}
    assert made(kubernetes) == []


def test_start_takes_the_code_along(idle: TestClient, services: ConsoleServices, kubernetes: LiveCluster) -> None:
    assert send_file(idle, "alice", FORM, zipped({"a": b"x"}), do="submit").status_code == HTTPStatus.SEE_OTHER
    ref = Ref("jobset", "bert", "vision-1")
    before = kubernetes.objects[ref]
    status = {"conditions": [{"type": "Completed", "status": "True"}], "terminalState": "Completed"}
    kubernetes.put({**before, "status": status})
    eventually(lambda: len(services.model.jobs) == 1)
    address = "/rest-server/api/v2/jobs/alice~bert/executionType"
    part = Ref("configmap", "bert-code-part-00", "vision-1")
    kept = kubernetes.objects.pop(part)
    refused = idle.put(address, json={"value": "START"}, headers=signed_in("alice"))
    assert refused.status_code == HTTPStatus.BAD_REQUEST
    kubernetes.put(kept)
    again = idle.put(address, json={"value": "START"}, headers=signed_in("alice"))
    assert again.status_code == HTTPStatus.ACCEPTED, again.text
    after = kubernetes.objects[ref]["metadata"]
    assert after["uid"] != before["metadata"]["uid"]
    assert after["annotations"]["pai-install/code"] == before["metadata"]["annotations"]["pai-install/code"]


def problem_at(page: str, field: str) -> str:
    """The text below a field of the form."""
    found = re.search(rf'<small class="bad said" id="problem-{re.escape(field)}">([^<]*)</small>', page)
    assert found is not None, field
    return found[1]


def invalid_fields(page: str) -> set[str]:
    return set(re.findall(r'aria-describedby="problem-([^"]+)" aria-invalid="true"', page))


def test_problems_are_at_their_fields(idle: TestClient) -> None:
    page = send(idle, "alice", {**FORM, "r0.instances": "<b>", "name": "", "retries": "x"}, do="check").text
    assert invalid_fields(page) == {"name", "retries", "r0.instances"}
    assert "&lt;b&gt; is not a whole number" in problem_at(page, "r0.instances")
    assert problem_at(page, "r0.gpus") == ""
    assert "Errors: 3" in page
    page = send(idle, "alice", FORM, do="check").text
    assert invalid_fields(page) == set()


def test_the_file_is_beside_its_form(idle: TestClient) -> None:
    page = shown(idle, "/jobs/new", "alice")
    assert re.search(r'<pre class="numbered" id="file" tabindex="0"><span>protocolVersion: 2', page)
    assert invalid_fields(page) == set()
    page = send(idle, "alice", FORM, do="add-role").text
    assert re.search(r'id="file".*role2:', page, re.DOTALL)
    assert 'id="file"' not in shown(idle, "/jobs/new?as=file", "alice")


def test_a_form_that_is_typed_is_checked(idle: TestClient, kubernetes: LiveCluster) -> None:
    for typed in (FORM, {"content": FILE}):
        page = send(idle, "alice", typed, do="typed").text
        assert SUBMIT in page
        assert "The file is valid" in page
    page = send(idle, "alice", {**FORM, "r0.command": ""}, do="typed").text
    assert invalid_fields(page) == {"r0.command"}
    assert SUBMIT not in page
    assert made(kubernetes) == []
    answer = send(idle, "alice", {"content": f"# {'x' * MOST_TYPED}\n{FILE}"}, do="typed")
    assert answer.status_code == HTTPStatus.BAD_REQUEST


def test_checks_while_typing_take_no_submissions(idle: TestClient, services: ConsoleServices) -> None:
    services.rates.rates |= {"submit": (1, 1000.0), "typed": (2, 1000.0)}
    for status in (HTTPStatus.OK, HTTPStatus.OK, HTTPStatus.TOO_MANY_REQUESTS):
        answer = send(idle, "alice", FORM, do="typed")
        assert answer.status_code == status
    assert int(answer.headers["retry-after"]) > 1
    assert send(idle, "alice", FORM, do="submit").status_code == HTTPStatus.SEE_OTHER


def test_a_large_form_is_a_small_page(idle: TestClient) -> None:
    roles = {f"r{number}.{name}": value for number in range(16) for name, value in
             {"name": f"role{number}", "image": "example.com/train:1", "instances": "two",
              "gpus": "x", "command": "python train.py\n" * 100}.items()}  # fmt: skip
    page = send(idle, "alice", {"name": "bert", **roles}, do="typed").text
    assert len(invalid_fields(page)) >= 32
    assert len(page.encode()) < 300 * 1024


@dataclass
class Receiver:
    """Stands in for the pod that receives code, at a port of this host. said: its first line. status: its result."""

    kubernetes: LiveCluster
    server: socket.socket
    said: str = ABSENT
    status: int = 0
    content: bytes = b""
    pods: list[Any] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.getsockname()[1])

    def started(self, item: Any) -> Any:
        """An object as the cluster makes it: a pod runs."""
        if item["kind"] != "Pod":
            return item
        self.pods.append(item)
        self.kubernetes.logged[item["metadata"]["name"]] = f"{self.said}\n"
        Thread(target=self._receive, args=(item,), daemon=True).start()
        return self._in_state(item, "Running", {"running": {}})

    def _receive(self, pod: Any) -> None:
        try:
            connection, _ = self.server.accept()
        except OSError:  # nothing was sent until the end of the test
            return
        with connection:
            while piece := connection.recv(65536):
                self.content += piece
        phase = "Failed" if self.status else "Succeeded"
        self.kubernetes.put(self._in_state(pod, phase, {"terminated": {"exitCode": self.status}}))

    @staticmethod
    def _in_state(pod: Any, phase: str, state: Any) -> Any:
        return {**pod, "status": {"phase": phase, "podIP": "127.0.0.1", "containerStatuses": [{"state": state}]}}


@pytest.fixture
def receiver(services: ConsoleServices, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = Receiver(kubernetes, server)
        use_pods_of(services, "127.0.0.0/8")
        monkeypatch.setattr("pai_install.console.pages.new_job.CodePort", partial(CodePort, port=made.port))
        create = kubernetes.create
        monkeypatch.setattr(kubernetes, "create", lambda objects: create([made.started(one) for one in objects]))
        yield made


def use_pods_of(services: ConsoleServices, network: str) -> None:
    code = CodeSettings(image="store/busybox", network=IPv4Network(network))
    object.__setattr__(services, "settings", services.settings.model_copy(update={"code": code}))


NOISE = zipped({"noise": os.urandom(1_500_000)})


def test_large_code_goes_to_the_storage_of_the_group(
    idle: TestClient, kubernetes: LiveCluster, receiver: Receiver
) -> None:
    assert SUBMIT in send_file(idle, "alice", FORM, NOISE, do="check").text
    assert receiver.pods == []
    assert send_file(idle, "alice", FORM, NOISE, do="submit").status_code == HTTPStatus.SEE_OTHER
    (pod,) = receiver.pods
    labels = pod["metadata"]["labels"]
    # its owner makes it, and the console alone reaches its port
    assert (labels["pai-install/user"], labels["pai-install/web-port"]) == ("alice", str(receiver.port))
    assert pod["spec"]["containers"][0]["image"] == "store/busybox"
    notes = kubernetes.objects[Ref("jobset", "bert", "vision-1")]["metadata"]["annotations"]
    assert notes["pai-install/code"] == f"sha256:{hashlib.sha256(receiver.content).hexdigest()}"
    assert '"storage": "team"' in notes["pai-install/code-place"]
    assert [ref for ref in kubernetes.objects if ref.kind in {"pod", "configmap"} and "code" in ref.name] == []


def test_code_that_the_storage_has_is_not_sent_again(
    idle: TestClient, kubernetes: LiveCluster, receiver: Receiver
) -> None:
    receiver.said = PRESENT
    assert send_file(idle, "alice", FORM, NOISE, do="submit").status_code == HTTPStatus.SEE_OTHER
    assert receiver.content == b""
    assert made(kubernetes) == ["bert"]


@pytest.mark.parametrize("status", [NOT_WRITTEN, NOT_EQUAL, 137])
def test_code_that_does_not_arrive_starts_no_job(
    idle: TestClient, kubernetes: LiveCluster, receiver: Receiver, status: int
) -> None:
    receiver.status = status
    answer = send_file(idle, "alice", FORM, NOISE, do="submit")
    assert "cannot store the code on team" in answer.text
    assert made(kubernetes) == []


def test_an_address_outside_of_the_pods_gets_no_code(
    idle: TestClient, services: ConsoleServices, kubernetes: LiveCluster, receiver: Receiver
) -> None:
    """A node writes the status of its pods."""
    use_pods_of(services, "10.192.0.0/16")
    answer = send_file(idle, "alice", FORM, NOISE, do="submit")
    assert "cannot connect" in answer.text
    assert receiver.content == b""
    assert made(kubernetes) == []


def test_one_upload_at_a_time_has_room_in_memory(idle: TestClient, services: ConsoleServices) -> None:
    large = b"x" * (5 * 1024 * 1024)
    services.uploads.enter("bob")
    assert send_file(idle, "alice", FORM, large, do="check").status_code == HTTPStatus.TOO_MANY_REQUESTS
    assert SUBMIT in send_file(idle, "alice", FORM, zipped({"a": b"x"}), do="check").text
    services.uploads.leave("bob")
    for _ in range(2):
        assert "cannot read the archive" in send_file(idle, "alice", FORM, large, do="check").text
    assert services.uploads.open == 0
