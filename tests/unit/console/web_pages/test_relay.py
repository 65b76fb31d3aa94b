"""Requests and WebSockets between the owner's browser and the program in the pod."""

from __future__ import annotations

from contextlib import suppress

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from pai_install.console.web_pages.socket_relay import MOST_MESSAGE
from tests.unit.console.conftest import eventually
from tests.unit.console.web_pages.conftest import HOST, ORIGIN, Site

PAGE = "/open/alice~note/"


def test_the_page_of_the_job_leads_its_owner_to_the_web_page(site: Site) -> None:
    session = site.session("alice")
    page = site.console().get("/jobs/alice~note", headers={"Cookie": f"__Host-Http-pai={session}"})
    assert 'href="/jobs/alice~note/open"' in page.text
    answer = site.open(session)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ORIGIN}{PAGE}")
    cookie = answer.headers["set-cookie"]
    assert all(word in cookie for word in (f"Path={PAGE}", "HttpOnly", "Secure", "SameSite=lax"))


def test_a_request_passes_as_it_is(site: Site) -> None:
    cookie = site.opened()
    answer = site.ask(f"{PAGE}api/a%2Fb%20c?token=1&x=%7B", cookie, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()) == (200, {"page": "of the job"})
    (seen,) = site.program.seen
    headers = dict(seen["headers"])
    assert (seen["path"], seen["query"]) == (f"{PAGE}api/a%2Fb%20c", "token=1&x=%7B")
    assert (headers["host"], headers["accept"], headers["x-forwarded-proto"]) == (HOST, "application/json", "https")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_passes(site: Site, method: str) -> None:
    content = b"\x00" * 300_000
    answer = site.ask(f"{PAGE}x", site.opened(), method, content=content, headers={"Origin": ORIGIN})
    assert (answer.status_code, site.program.seen[0]["method"], site.program.seen[0]["body"]) == (200, method, content)


def test_a_body_without_a_length_passes(site: Site) -> None:
    pieces = (b"y" * 1000 for _ in range(50))
    site.ask(f"{PAGE}x", site.opened(), "POST", content=pieces, headers={"Origin": ORIGIN})
    assert site.program.seen[0]["body"] == b"y" * 50_000


def test_a_large_answer_comes_piece_by_piece(site: Site) -> None:
    assert len(site.ask(f"{PAGE}large", site.opened()).content) == 200 * 65536


def test_messages_pass_both_ways(site: Site) -> None:
    with site.socket(f"{PAGE}api/kernels/1/channels", site.opened(), subprotocols=["v1.kernel", "other"]) as socket:
        assert socket.subprotocol == "other"
        socket.send("ping me")
        assert socket.recv(60) == '{"pong": true}'
        for content in ("text \u2713", b"\x00\xff", b"z" * (MOST_MESSAGE - 100)):
            socket.send(content)
            assert socket.recv(60) == content
    eventually(lambda: bool(site.program.closed))


def test_the_program_closes_a_socket_with_its_own_code(site: Site) -> None:
    with site.socket(f"{PAGE}x", site.opened()) as socket:
        socket.send("close")
        with pytest.raises(ConnectionClosed):
            socket.recv(60)
        assert socket.close_code == 4321


def test_a_message_that_is_too_large_ends_the_socket_and_nothing_else(site: Site) -> None:
    cookie = site.opened()
    with site.socket(f"{PAGE}x", cookie) as socket:
        with suppress(ConnectionClosed):
            socket.send(b"z" * (MOST_MESSAGE + 1))
        with pytest.raises(ConnectionClosed):
            socket.recv(60)
    assert site.ask(PAGE, cookie).status_code == 200


def test_a_browser_that_leaves_ends_an_endless_answer(site: Site) -> None:
    headers = {"Host": HOST, "Cookie": site.opened()}
    with httpx2.stream("GET", f"http://127.0.0.1:{site.port}{PAGE}endless", headers=headers) as answer:
        # without a name, the iterator ends at once, and closes the connection
        pieces = answer.iter_raw()
        assert next(pieces).startswith(b"data")
        assert site.program.ended == 0
    eventually(lambda: site.program.ended == 1)


def test_a_program_that_does_not_answer_is_said_to(site: Site) -> None:
    cookie = site.opened()
    pod = next(item for ref, item in site.kubernetes.objects.items() if ref.kind == "pod")
    pod["metadata"]["labels"]["pai-install/web-port"] = "9"
    site.kubernetes.put(pod)
    eventually(lambda: site.services.model.jobs.find("alice", "note", None)[0].job.instances[0].web_port == 9)
    assert site.ask(PAGE, cookie).status_code == 502
    with pytest.raises(Exception, match="rejected"):
        site.socket(f"{PAGE}x", cookie)
