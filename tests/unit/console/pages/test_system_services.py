"""Pages of services of the system, and the logs of their pods."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any

import pytest
from starlette.testclient import TestClient

from pai_install.cluster.client import ApiError
from pai_install.console.log_reader import LogReader
from pai_install.console.pages.rendering import last_part
from pai_install.console.pages.system_services import MOST_LINKS, MOST_PODS
from pai_install.console.services import ConsoleServices
from pai_install.kube.model import Ref
from tests.unit.console.conftest import signed_in
from tests.unit.console.live import LiveClients, LiveCluster
from tests.unit.console.pages.test_jobs import EVIL, shown
from tests.unit.console.pages.test_live import SCRIPT
from tests.unit.console.pages.test_waiting import rows, used

__all__ = ["used"]
DEPLOYMENT = {"kind": "ReplicaSet", "name": "coredns-5d7", "controller": True}
HASH = {"pod-template-hash": "5d7"}
LOG = "/services/kube-system/log/coredns-5d7-a"


def system_pod(name: str, owner: dict[str, Any], phase: str = "Running", **labels: str) -> dict[str, Any]:
    ready = "True" if phase == "Running" else "False"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels, "ownerReferences": [owner]},
        "spec": {"nodeName": "g1", "containers": [{"name": "main"}, {"name": "side"}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "main", "restartCount": 2, "state": {"waiting": {"reason": EVIL}}}]
            if phase != "Running"
            else [],
        },
    }


@pytest.fixture
def system(used: TestClient, kubernetes: LiveCluster) -> TestClient:
    """A Deployment with a pod that runs and one that does not, and a static pod."""
    static = {"kind": "Node", "name": "m1", "controller": True}
    kubernetes.put(
        system_pod("coredns-5d7-a", DEPLOYMENT, **HASH),
        system_pod("coredns-5d7-b", DEPLOYMENT, "Pending", **HASH),
        system_pod("kube-apiserver-m1", static),
    )
    return used


def refuse(kubernetes: LiveCluster, reason: str) -> None:
    def refused(*_words: object, **_more: object) -> str:
        raise ApiError("cannot read the log", reason=reason)

    kubernetes.logs = refused  # type: ignore[method-assign]


def test_services(system: TestClient) -> None:
    page = shown(system, "/services", "root")
    assert EVIL not in page
    first, second = rows(page, "Pods of the system")
    assert (first[1], first[3], first[4], first[5]) == ("coredns", "Deployment", "1 / 2", "2")
    assert first[7].split() == ["coredns-5d7-b", "coredns-5d7-a"]
    assert (second[1], second[4]) == ("kube-apiserver", "1 / 1")
    assert "holds" not in page


def test_a_service_has_all_of_its_pods(system: TestClient, kubernetes: LiveCluster) -> None:
    first, second = rows(shown(system, "/services/kube-system/coredns", "root"), "2 of 2 pods")
    assert first[1:4] == ["coredns-5d7-b", "g1", "2"]
    assert second[1] == "coredns-5d7-a"
    kubernetes.put(*(system_pod(f"coredns-5d7-{number}", DEPLOYMENT, **HASH) for number in range(1000)))
    page = shown(system, "/services", "root")
    assert f"and {1002 - MOST_LINKS} more" in page
    assert page.count("/services/kube-system/log/coredns") == MOST_LINKS
    page = shown(system, "/services/kube-system/coredns", "root")
    assert f"{MOST_PODS} of 1002 pods" in page
    assert len(page) < 300 * 1024


@pytest.mark.parametrize("path", ["kube-system/none", "vision-1/coredns", "vision-1/holds"])
def test_a_service_that_is_none(system: TestClient, path: str) -> None:
    assert system.get(f"/services/{path}", headers=signed_in("root")).status_code == HTTPStatus.NOT_FOUND


def test_the_log_of_a_pod_is_read_as_its_reader(
    system: TestClient, kubernetes: LiveCluster, clients: LiveClients
) -> None:
    kubernetes.logged["coredns-5d7-a"] = "one\n</pre><script>alert(1)</script>\n\x1b[2J"
    shown(system, "/services", "root")
    clients.callers.clear()
    page = shown(system, LOG, "root")
    assert {one.label for one in clients.callers} == {"root"}
    assert "one\n&lt;/pre&gt;&lt;script&gt;" in page
    assert page.count("<script") == page.count(SCRIPT) == 1
    assert f'href="{LOG}?container=side"' in page
    follow = re.search(r'data-follow="(/log-manager/[^"]+&amp;follow=true)"', page)
    assert follow is not None
    assert system.get(follow[1].replace("&amp;", "&")).text.startswith("data: one\n\n")
    kubernetes.calls.clear()
    page = shown(system, "/services/kube-system/log/coredns-5d7-b?container=main&previous=yes", "root")
    assert SCRIPT not in page
    assert ("logs", Ref("pod", "coredns-5d7-b", "kube-system")) in kubernetes.calls


@pytest.mark.parametrize("path", [LOG, "/services/kube-system/coredns", "/services/kube-system/log/none"])
def test_members_read_no_log_of_the_system(system: TestClient, kubernetes: LiveCluster, path: str) -> None:
    kubernetes.logged["coredns-5d7-a"] = "secret words"
    for who in ("alice", "bob", "dan"):
        answer = system.get(path, headers=signed_in(who))
        assert answer.status_code == HTTPStatus.FORBIDDEN
        assert "<h1" in answer.text
        assert "secret words" not in answer.text
    assert system.get(path).status_code == HTTPStatus.SEE_OTHER


def test_a_log_that_the_console_may_not_read_for_an_administrator_has_a_remedy(
    system: TestClient, kubernetes: LiveCluster
) -> None:
    refuse(kubernetes, "Forbidden")
    answer = system.get(LOG, headers=signed_in("root"))
    assert answer.status_code == HTTPStatus.FORBIDDEN
    assert "pai-install logs kube-system/coredns-5d7-a" in answer.text


@pytest.mark.parametrize(
    "path", ["kube-system/log/..", "kube-system/log/A", "..%2f/log/x", f"kube-system/log/{'x' * 300}"]
)
def test_a_name_that_is_none_asks_for_nothing(system: TestClient, kubernetes: LiveCluster, path: str) -> None:
    kubernetes.calls.clear()
    answer = system.get(f"/services/{path}", headers=signed_in("root"))
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert [one for one in kubernetes.calls if one[0] == "logs"] == []


def test_a_container_that_is_none(system: TestClient) -> None:
    answer = system.get(f"{LOG}?container=%3Cscript%3E", headers=signed_in("root"))
    assert answer.status_code == HTTPStatus.NOT_FOUND
    assert "<script" not in answer.text


def test_a_container_without_a_log_is_said(system: TestClient, kubernetes: LiveCluster) -> None:
    refuse(kubernetes, "BadRequest")
    page = shown(system, LOG, "root")
    assert 'role="status"' in page
    assert SCRIPT not in page


def test_the_store_has_the_log_of_a_deleted_pod(
    system: TestClient, services: ConsoleServices, kubernetes: LiveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server says first whether its reader may read logs there."""
    path = "/services/kube-system/log/coredns-5d7-gone"
    asked: list[tuple[str, str]] = []

    def stored(_self: LogReader, namespace: str, pod: str, _tail: int) -> str:
        asked.append((namespace, pod))
        return "last words <b>"

    monkeypatch.setattr(LogReader, "text", stored)
    refuse(kubernetes, "NotFound")
    assert system.get(path, headers=signed_in("root")).status_code == HTTPStatus.NOT_FOUND
    object.__setattr__(services, "logs", LogReader("http://127.0.0.1:1"))
    page = shown(system, path, "root")
    assert "last words &lt;b&gt;" in page
    assert "This pod is deleted" in page
    assert asked == [("kube-system", "coredns-5d7-gone")]
    refuse(kubernetes, "Forbidden")
    assert system.get(path, headers=signed_in("root")).status_code == HTTPStatus.FORBIDDEN
    assert len(asked) == 1


@pytest.mark.parametrize("line", ["x" * 100, "<" * 2000, "\x1b" * 500, "字" * 40_000, "'" * 2_000_000])
def test_a_log_fits_its_page(system: TestClient, kubernetes: LiveCluster, line: str) -> None:
    kubernetes.logged["coredns-5d7-a"] = f"{line}\n" * 500 if len(line) < 50_000 else line
    page = shown(system, LOG, "root")
    assert len(page.encode()) < 300 * 1024
    assert len(page) > 10_000


def test_the_last_lines_are_kept_whole() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    kept = last_part(text)
    assert kept.endswith("line 99999\n")
    assert re.fullmatch(r"line \d+", kept.split("\n")[1])
    assert last_part("") == ""
    assert last_part("one\n") == "one\n"
