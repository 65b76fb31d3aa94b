"""The client over kubectl: what is asked, what is made of the answers, and what goes wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pai_install.cluster.api_errors import reason_of, unanswered
from pai_install.cluster.client import NO_ANSWER, ApiError, EvictionOutcome, LogWindow, Patch, PatchKind, Select
from pai_install.cluster.kubectl import KubectlClient
from pai_install.cluster.transport import Answer, Call
from pai_install.errors import PaiError
from pai_install.kube.model import Ref
from tests.errors import raises

from .recordings import items
from .scripted import ScriptedTransport, said

NODE = Ref("node", "worker1")
POD = Ref("pod", "train-0", "default")


def client(*answers: Any) -> tuple[KubectlClient, ScriptedTransport]:
    """A client whose requests are answered so, in order."""
    transport = ScriptedTransport(answers)
    return KubectlClient(transport), transport


def printed(*objects: Any) -> str:
    """A list, as kubectl prints it."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def test_get_gives_none_for_what_does_not_exist() -> None:
    door, transport = client(said(json.dumps(items("nodes")[1])), said(""))
    found, nothing = door.get([NODE, Ref("node", "nobody")])
    assert found is not None
    assert found["metadata"]["name"] == "worker1"
    assert nothing is None
    assert len(transport.trips) == 1
    assert transport.calls[0].argv[:3] == ("get", "node", "worker1")


def test_list_takes_several_selections_in_one_trip() -> None:
    door, transport = client(said(printed(*items("nodes"))), said(printed()))
    nodes, pods = door.list(Select(("nodes",)), Select(("pods", "jobs"), "default", "a=b", "spec.nodeName=w"))
    assert (len(nodes), pods) == (5, ())
    assert "--all-namespaces" in transport.calls[0].argv
    words = {"pods,jobs", "--namespace=default", "--selector=a=b", "--field-selector=spec.nodeName=w"}
    assert words <= set(transport.calls[1].argv)
    assert len(transport.trips) == 1


def test_nothing_asked_is_no_trip() -> None:
    door, transport = client()
    assert (door.get([]), door.apply([]), door.patch([]), door.evict([])) == ((), (), (), ())
    door.delete([])
    assert transport.trips == []


def test_apply_is_server_side_and_ours_and_takes_over_only_when_told() -> None:
    door, transport = client(said(printed(*items("nodes")[:2])))
    assert len(door.apply(items("nodes")[:2])) == 2
    call = transport.calls[0]
    assert {"--server-side", "--field-manager=pai-install"} <= set(call.argv)
    assert "--force-conflicts" not in call.argv
    assert len(json.loads(call.stdin)["items"]) == 2
    door.apply(items("nodes")[:1], force=True)
    assert "--force-conflicts" in transport.calls[1].argv


def test_objects_printed_one_behind_the_other_are_all_read() -> None:
    texts = "\n".join(json.dumps(item, indent=4) for item in items("nodes")[:3])
    door, _ = client(said(texts))
    assert [item["metadata"]["name"] for item in door.create(items("nodes")[:3])] == ["master", "worker1", "worker2"]


def test_a_patch_stands_in_no_argument() -> None:
    door, transport = client(said(json.dumps(items("nodes")[1])))
    door.patch([Patch(NODE, {"metadata": {"annotations": {"a": "secret"}}}, PatchKind.STRATEGIC)])
    call = transport.calls[0]
    assert "secret" in call.stdin
    assert "secret" not in " ".join(call.argv)
    assert {"--type=strategic", "--patch-file=/dev/stdin", "--field-manager=pai-install"} <= set(call.argv)
    assert not call.reads


def test_waiting_for_all_objects_of_a_kind_says_so() -> None:
    door, transport = client(said(""), said(""))
    door.wait(Select(("pods",), "pai-kueue"), "delete", 5)
    door.wait(Select(("pods",), "pai-kueue", "a=b"), "delete", 5)
    assert ["--all" in call.argv for call in transport.calls] == [True, False]


def test_a_patch_of_the_status_says_so() -> None:
    door, transport = client(said("{}"), said("{}"))
    door.patch([Patch(NODE, {"status": {}}, part="status"), Patch(NODE, {"spec": {}})])
    whole, part = ("--subresource=status" in call.argv for call in transport.calls)
    assert (whole, part) == (True, False)


def test_delete_groups_by_kind_and_namespace() -> None:
    door, transport = client(said(), said())
    door.delete([Ref("pod", "a", "x"), Ref("pod", "b", "x"), Ref("job", "c", "x")], wait_s=30)
    assert [call.argv[:4] for call in transport.calls] == [
        ("delete", "job", "c", "--namespace=x"),
        ("delete", "pod", "a", "b"),
    ]
    assert "--timeout=30s" in transport.calls[0].argv
    door.delete([NODE])
    assert "--wait=false" in transport.calls[2].argv


def test_deleting_everything_by_mistake_is_not_possible() -> None:
    door, transport = client(said())
    with pytest.raises(ValueError, match="labels or fields"):
        door.delete_selected(Select(("pods",)))
    door.delete_selected(Select(("pods",), "default", "app=x"), wait_s=5)
    assert "--cascade=foreground" in transport.calls[0].argv


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (said("pod/x condition met"), True),
        (said(rc=1, err="error: timed out waiting for the condition on pods/x"), False),
        (said(rc=1, err="error: no matching resources found"), False),
        (said(rc=None, err="no answer within 70 s"), False),
    ],
)
def test_wait_says_whether_it_came(answer: Any, came: bool) -> None:
    door, transport = client(answer)
    assert door.wait(Select(("pods",), "default", "app=x"), "condition=Ready", 10) is came
    assert {"--for=condition=Ready", "--timeout=10s"} <= set(transport.calls[0].argv)
    assert transport.calls[0].timeout_s > 10


def test_wait_that_is_refused_is_an_error() -> None:
    door, _ = client(said(rc=1, err='Error from server (Forbidden): pods is forbidden: User "x"'))
    with raises("api-request-refused", kind=ApiError) as error:
        door.wait([POD], "delete", 1)
    assert error.value.reason == "Forbidden"


def test_exec_gives_the_commands_own_end() -> None:
    door, transport = client(said("out", rc=3, err="oops\ncommand terminated with exit code 3"))
    found = door.exec(POD, ["sh", "-c", "exit 3"], container="main", stdin="words")
    assert (found.returncode, found.stdout) == (3, "out")
    assert transport.calls[0].argv == (
        "exec", "train-0", "--namespace=default", "--container=main", "--stdin", "--", "sh", "-c", "exit 3",
    )  # fmt: skip
    assert transport.calls[0].stdin == "words"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (said(rc=1, err='Error from server (NotFound): pods "train-0" not found'), "NotFound"),
        (said(rc=1, err="error: unable to upgrade connection: container not found"), ""),
        (said(rc=None, err="no answer within 60 s"), "Timeout"),
        (said(rc=1, err="Unable to connect to the server: unexpected EOF"), "NoAnswer"),
        (said(rc=1, err="Error from server: etcdserver: leader changed"), "NoAnswer"),
    ],
)
def test_exec_that_does_not_start_is_an_error(answer: Any, reason: str) -> None:
    door, _ = client(answer)
    with raises("api-request-refused", kind=ApiError) as error:
        door.exec(POD, ["true"])
    assert error.value.reason == reason
    assert "master" in error.value.message


def test_logs() -> None:
    door, transport = client(said("one\ntwo\n"))
    assert door.logs(POD, container="main", tail=2, previous=True) == "one\ntwo\n"
    assert {"--tail=2", "--container=main", "--previous"} <= set(transport.calls[0].argv)


def test_logs_of_many_are_sorted_by_pod_and_one_without_does_not_spoil_them() -> None:
    text = "[pod/a/main] one\n[pod/b/main] two\n[pod/a/main] three\nnoise\n"
    door, _ = client(said(text, rc=1, err="Error from server (BadRequest): container is waiting to start"))
    assert door.logs_of(Select(("pods",), "default", "app=x"), tail=5) == {"a": "one\nthree", "b": "two"}


def test_logs_of_a_whole_namespace_name_a_selector() -> None:
    """kubectl refuses to read the logs of a namespace without one."""
    door, transport = client(said("[pod/a/main] one\n"))
    assert door.logs_of(Select(("pods",), "kube-system")) == {"a": "one"}
    assert "--selector=!pai-install/none" in transport.calls[0].argv


def test_watch_gives_each_document_as_it_comes() -> None:
    events = [{"type": kind, "object": item} for kind, item in zip(("ADDED", "MODIFIED"), items("nodes"), strict=False)]
    transport = ScriptedTransport([], printed=list(map(json.dumps, events)))
    found = list(KubectlClient(transport).watch(Select(("nodes",))))
    assert [(change.type, change.object["metadata"]["name"]) for change in found] == [
        ("ADDED", "master"),
        ("MODIFIED", "worker1"),
    ]
    assert {"--watch", "--output-watch-events"} <= set(transport.calls[0].argv)


def test_logs_line_by_line() -> None:
    transport = ScriptedTransport([], printed=["a", "b"])
    assert list(KubectlClient(transport).log_lines(POD, LogWindow(follow=True))) == ["a", "b"]
    assert transport.calls[0].argv[-2:] == ("--tail=-1", "--follow")


def test_evictions_in_one_trip_each_with_its_outcome() -> None:
    budget = "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's disruption budget."
    door, transport = client(
        said("{}"), said(rc=1, err='Error from server (NotFound): pods "b" not found'), said(rc=1, err=budget)
    )
    found = door.evict([Ref("pod", name, "default") for name in "abc"], grace_s=5)
    assert [entry.outcome for entry in found] == [
        EvictionOutcome.EVICTED,
        EvictionOutcome.GONE,
        EvictionOutcome.BLOCKED,
    ]
    assert "disruption budget" in found[2].message
    assert transport.calls[0].argv[1] == "--raw=/api/v1/namespaces/default/pods/a/eviction"
    assert json.loads(transport.calls[0].stdin)["deleteOptions"] == {"gracePeriodSeconds": 5}
    assert len(transport.trips) == 1


def test_an_eviction_that_is_refused_otherwise_is_an_error() -> None:
    door, _ = client(said(rc=1, err="Error from server (Forbidden): no"))
    with raises("api-request-refused", kind=ApiError):
        door.evict([POD])


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("Error from server (Conflict): Operation cannot be fulfilled on nodes", "Conflict"),
        ("error: Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.a", "Conflict"),
        ('error: the server doesn\'t have a resource type "queues"', "NoSuchKind"),
        ("error: something else", ""),
    ],
)  # fmt: skip
def test_a_refusal_says_what_the_server_said_where_and_what_to_do(stderr: str, reason: str) -> None:
    door, _ = client(said(rc=1, err=stderr))
    with raises("api-request-refused", kind=ApiError) as error:
        door.patch([Patch(NODE, {})])
    assert (error.value.reason, error.value.details) == (reason, stderr)
    assert bool(error.value.remedy) is bool(reason)


def test_an_api_server_that_has_just_started_is_none_yet() -> None:
    """Its words, seen after the runtime of the only control plane was restarted: the administrator may do all."""
    words = 'nodes is forbidden: User "kubernetes-admin" cannot list resource "nodes" in API group ""'
    answer = Answer(1, "", f"Error from server (Forbidden): {words}\n")
    assert reason_of(answer.stderr) == NO_ANSWER
    assert unanswered(answer, Call(("get", "nodes"), reads=True))
    policy = 'Error from server (Forbidden): configmaps "x" is forbidden: ValidatingAdmissionPolicy denied request: no'
    assert reason_of(policy) == "Forbidden"


@pytest.mark.parametrize("garbage", ["<html>504</html>", '{"kind": "Node"', "[1, 2]", '"x"'])
def test_garbage_is_an_error_and_no_empty_answer(garbage: str) -> None:
    door, _ = client(said(garbage))
    with pytest.raises(PaiError, match="master returned no"):
        door.list(Select(("nodes",)))


def test_fewer_answers_than_questions_are_an_error() -> None:
    transport = ScriptedTransport([said("{}")])

    class Short(ScriptedTransport):
        def run(self, calls: Any) -> Any:
            return transport.run(calls[:1])

    with raises("kubectl-answers-incomplete", "1", "2"):
        KubectlClient(Short([])).list(Select(("nodes",)), Select(("pods",)))


def test_a_token_is_asked_for_by_standard_input_and_bound_to_an_object() -> None:
    status = {"token": "planted-4711", "expirationTimestamp": "2027-01-01T00:00:00Z"}
    door, transport = client(said(json.dumps({"kind": "TokenRequest", "status": status})))
    bound = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alice.1", "uid": "u", "labels": {}}}
    token = door.request_token(Ref("serviceaccount", "alice", "pai-users"), 86400, bound)
    assert (token.text, token.until) == ("planted-4711", "2027-01-01T00:00:00Z")
    assert "planted" not in repr(token)
    (call,) = transport.calls
    assert call.argv[1] == "--raw=/api/v1/namespaces/pai-users/serviceaccounts/alice/token"
    assert json.loads(call.stdin)["spec"] == {
        "expirationSeconds": 86400,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "alice.1", "uid": "u"},
    }
    assert not call.reads, "a token that was lost is not asked for elsewhere"
