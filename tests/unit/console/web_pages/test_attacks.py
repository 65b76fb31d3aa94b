"""Other people, other sites, and the program in the pod against the owner, the console, and its host."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from pai_install.console.errors import RestError
from pai_install.console.sign_in.sessions import COOKIE
from pai_install.console.web_pages import owned
from pai_install.console.web_pages.access import COOKIE as PAGE_COOKIE
from pai_install.kube.model import Ref
from pai_install.users.credentials import fingerprint
from tests.stopwatch import Stopwatch
from tests.unit.console.conftest import eventually
from tests.unit.console.web_pages.conftest import HOST, ORIGIN, Site, page_job, removed

PAGE = "/open/alice~note/"


def refused(site: Site, cookie: str, path: str = PAGE) -> bool:
    """Whether neither a request nor a WebSocket arrives."""
    before = len(site.program.seen)
    status = site.ask(path, cookie).status_code
    with pytest.raises(InvalidStatus):
        site.socket(path, cookie)
    return status in (403, 404) and len(site.program.seen) == before


@pytest.mark.parametrize("user", ["carol", "bob"])
def test_nobody_else_opens_the_page(site: Site, user: str) -> None:
    """Neither a colleague, who reads the job, nor a member of another group."""
    session = site.session(user)
    assert site.open(session).status_code == (403 if user == "carol" else 404)
    page = site.console().get("/jobs/alice~note", headers={"Cookie": f"{COOKIE}={session}"})
    assert "/open" not in page.text
    assert refused(site, f"{COOKIE}={session}")


def test_a_cookie_of_another_page_opens_nothing(site: Site) -> None:
    port = next(one.web_port for one in site.services.model.jobs.find("alice", "note", None)[0].job.instances)
    site.kubernetes.put(*page_job("carol", "hers", port))
    eventually(lambda: bool(site.services.model.jobs.find("carol", "hers", None)))
    assert refused(site, site.opened("carol", "carol~hers"))
    assert refused(site, site.opened(), "/open/carol~hers/")


@pytest.mark.parametrize("damage", ["", "x", "a.b.c", "{}.", "cut"])
def test_a_forged_cookie_is_none(site: Site, damage: str) -> None:
    value = site.opened().rpartition("=")[2]
    forged = value[:-2] + ("AA" if value[-2:] != "AA" else "BB") if damage == "cut" else damage.format(value)
    assert refused(site, f"{PAGE_COOKIE}={forged}")


def test_the_cookie_of_a_session_is_none_of_a_page(site: Site) -> None:
    """The page of another job of the owner has the session's cookie sent, and opens nothing with it."""
    session = site.session("alice")
    assert refused(site, f"{COOKIE}={session}")
    assert refused(site, f"{PAGE_COOKIE}={session}")
    assert refused(site, "")


def test_the_cookie_of_a_page_is_none_of_the_console(site: Site) -> None:
    value = site.opened().rpartition("=")[2]
    for cookie in (f"{COOKIE}={value}", f"{PAGE_COOKIE}={value}"):
        assert site.console().get("/jobs", headers={"Cookie": cookie}).status_code == 303
        assert site.console().get("/rest-server/api/v2/jobs", headers={"Cookie": cookie}).status_code == 401
    with pytest.raises(RestError):
        site.sign_in.tokens.caller(value)


def test_a_page_does_not_open_another_page(site: Site) -> None:
    """A script in one web page asks the console, on the same host, for the cookie of another one."""
    session = site.session("alice")
    for word in ("same-site", "cross-site", ""):
        answer = site.open(session, site=word)
        assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert site.open(session, site="none").status_code == 303


@pytest.mark.parametrize("origin", ["https://evil.example.org", "https://testserver", "null", f"http://{HOST}", None])
def test_another_origin_sends_nothing(site: Site, origin: str | None) -> None:
    cookie = site.opened()
    headers = {} if origin is None else {"Origin": origin}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert site.ask(PAGE, cookie, method, headers=headers).status_code == 403
    with pytest.raises(InvalidStatus):
        site.socket(PAGE, cookie, origin)
    assert site.program.seen == []


def test_a_web_page_sends_no_form_to_the_console(site: Site) -> None:
    """Its origin differs by the port alone, and the browser sends the session along."""
    session = site.session("alice")
    page = site.console().get("/jobs/alice~note", headers={"Cookie": f"{COOKIE}={session}"})
    form = page.text.partition('name="form" value="')[2].partition('"')[0]
    assert form
    for origin, status in ((ORIGIN, 403), ("https://testserver", 303)):
        headers = {"Cookie": f"{COOKIE}={session}", "Origin": origin}
        answer = site.console().post("/jobs/alice~note/stop", data={"form": form}, headers=headers)
        assert answer.status_code == status


def test_the_console_does_not_lend_itself_to_pages_of_its_host(site: Site) -> None:
    session = site.session("alice")
    answer = site.console().get("/jobs/alice~note", headers={"Cookie": f"{COOKIE}={session}"})
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in answer.headers


def test_scripts_plant_no_session(site: Site) -> None:
    """Browsers take cookies of this name from an answer alone, with HttpOnly: no script of the host sets one."""
    page = site.console().get("/login")
    assert all(cookie.startswith("__Host-Http-") for cookie in page.headers.get_list("set-cookie"))
    assert COOKIE.startswith("__Host-Http-")


def test_the_program_learns_no_credential_of_the_console(site: Site) -> None:
    cookie = f"{site.opened()}; __Host-pai-language=en; _xsrf=2|ab; other=x"
    site.ask(PAGE, cookie, headers={"Authorization": "Bearer secret", "X-Forwarded-For": "1.2.3.4", "Forwarded": "x"})
    with site.socket(PAGE, cookie) as socket:
        socket.send("ping me")
        socket.recv(60)
    for seen in site.program.seen:
        found: dict[str, list[str]] = {}
        for name, value in seen["headers"]:
            found.setdefault(name.lower(), []).append(value)
        assert found["cookie"] == ["_xsrf=2|ab; other=x"]
        assert not {"authorization", "x-forwarded-for", "forwarded"} & found.keys()


def test_the_program_sets_cookies_for_itself_alone(site: Site) -> None:
    site.program.answers = [
        ("set-cookie", "_xsrf=1; Path=/"),
        ("set-cookie", "wide=1; Domain=testserver; Path=/; HttpOnly; SameSite=None"),
        ("set-cookie", f"{COOKIE}=planted; Path=/; Secure; HttpOnly"),
        ("set-cookie", f"{PAGE_COOKIE}=planted; Path=/open/"),
        ("set-cookie", f"{COOKIE} =planted; Path=/"),
        ("set-cookie", f"=; {COOKIE}=planted; Path=/"),
        ("set-cookie", "a b=1"),
        ("set-cookie", "nothing"),
    ]
    answer = site.ask(PAGE, site.opened())
    assert answer.headers.get_list("set-cookie") == [
        f"_xsrf=1; Path={PAGE}; Secure",
        f"wide=1; Path={PAGE}; Secure; HttpOnly",
    ]


def test_the_program_changes_nothing_for_the_whole_host(site: Site) -> None:
    kept = {"content-security-policy": "script-src 'self'", "etag": "x"}
    site.program.answers = [
        *kept.items(),
        ("strict-transport-security", "max-age=0"),
        ("clear-site-data", '"*"'),
        ("service-worker-allowed", "/"),
        ("alt-svc", 'h2="evil.example.org:443"'),
        ("report-to", "{}"),
        ("nel", "{}"),
        ("access-control-allow-origin", "https://evil.example.org"),
        ("access-control-allow-credentials", "true"),
        ("cache-control", "max-age=31536000, immutable"),
        ("x-frame-options", "ALLOWALL"),
    ]
    headers = site.ask(PAGE, site.opened()).headers
    for name, _ in site.program.answers[2:9]:
        assert name not in headers, name
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["content-security-policy"] == "script-src 'self', frame-ancestors 'self'"
    assert headers["etag"] == "x"


def test_a_service_worker_is_not_passed_on(site: Site) -> None:
    assert site.ask(f"{PAGE}worker.js", site.opened(), headers={"Service-Worker": "script"}).status_code == 403


@pytest.mark.parametrize("method", ["TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_do_not_pass(site: Site, method: str) -> None:
    assert site.ask(PAGE, site.opened(), method).status_code == 405
    assert site.program.seen == []


@pytest.mark.parametrize("host", ["evil.example.org", "127.0.0.1", ""])
def test_a_foreign_host_name_is_refused(site: Site, host: str) -> None:
    cookie = site.opened()
    assert site.ask(PAGE, cookie, headers={"Host": host}).status_code == 400
    assert site.program.seen == []


ELSEWHERE = ("/", "/jobs", "/rest-server/api/v2/info", "/open/", "/open/alice", "/healthz", "//open/alice~note/")


@pytest.mark.parametrize("path", ELSEWHERE)
def test_the_port_serves_nothing_else(site: Site, path: str) -> None:
    assert refused(site, site.opened(), path)


@pytest.mark.parametrize("address", ["10.9.9.9", "169.254.169.254", "::1", "", "localhost", "0127.0.0.1"])
def test_the_console_asks_pods_alone(site: Site, address: str) -> None:
    """Root of a worker writes the status of its pods. The console asks from the network of a control plane."""
    port = next(one.web_port for one in site.services.model.jobs.find("alice", "note", None)[0].job.instances)
    site.kubernetes.put(*page_job("alice", "evil", port, address))
    eventually(lambda: bool(site.services.model.jobs.find("alice", "evil", None)))
    assert site.open(site.session("alice"), "alice~evil").status_code == 503


def test_a_person_without_a_cookie_goes_to_the_page_of_the_job(site: Site) -> None:
    answer = site.ask(f"{PAGE}lab", headers={"Sec-Fetch-Mode": "navigate"})
    assert (answer.status_code, answer.headers["location"]) == (303, "https://testserver/jobs/alice~note")


def read_for(pieces: Iterator[bytes], seconds: float) -> None:
    """Reads an answer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        next(pieces)


def ends_within(site: Site, cookie: str, seconds: float, cause: Callable[[], object]) -> None:
    """An open WebSocket and an endless answer end in this time after a cause, and nothing new begins."""
    headers = {"Host": HOST, "Cookie": cookie}
    with site.socket(PAGE, cookie) as socket, httpx2.Client(trust_env=False, timeout=20) as client:
        socket.send("ping me")
        socket.recv(60)
        with client.stream("GET", f"http://127.0.0.1:{site.port}{PAGE}endless", headers=headers) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            time.sleep(1.2)
            next(pieces)
            watch = Stopwatch()
            cause()
            with pytest.raises(ConnectionClosed):
                socket.recv(60)
            with pytest.raises((httpx2.HTTPError, StopIteration)):
                read_for(pieces, 10)
            assert watch.within(seconds)
    assert site.ask(PAGE, cookie).status_code in (403, 404)


def test_a_removed_user_is_out_within_two_seconds(site: Site) -> None:
    ends_within(site, site.opened(), 2, lambda: removed(site, "alice"))


def test_a_user_who_left_the_group_is_out_within_two_seconds(site: Site) -> None:
    ends_within(site, site.opened(), 2, lambda: site.kubernetes.delete([Ref("rolebinding", "pai-alice", "vision-1")]))


def test_a_stopped_job_ends_its_page(site: Site) -> None:
    ends_within(site, site.opened(), 2, lambda: site.kubernetes.delete([Ref("job", "note", "vision-1")]))


def test_a_sign_out_ends_its_pages(site: Site) -> None:
    session = site.session("alice")
    ends_within(site, site.opened(session=session), 4, lambda: site.sign_in.sessions.close(fingerprint(session)))


def test_the_api_server_refuses_within_seconds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No watch told anything: the caller alone may read the job no more."""
    monkeypatch.setattr(owned, "_KEPT_S", 0.5)
    roles = dict(site.services.clients.roles)  # type: ignore[attr-defined]
    cookie = site.opened()

    def forbid() -> None:
        roles["alice"] = frozenset()
        site.services.clients.roles = roles  # type: ignore[attr-defined]

    ends_within(site, cookie, 3, forbid)


def test_a_new_job_of_the_name_needs_a_new_cookie(site: Site) -> None:
    cookie = site.opened()
    port = next(one.web_port for one in site.services.model.jobs.find("alice", "note", None)[0].job.instances)
    site.kubernetes.delete([Ref("job", "note", "vision-1"), Ref("pod", "note-0", "vision-1")])
    job, pod = page_job("alice", "note", port)
    job["metadata"]["uid"] = "uid-another"
    site.kubernetes.put(job, pod)
    eventually(lambda: [one.job.uid for one in site.services.model.jobs.find("alice", "note", None)] == ["uid-another"])
    assert site.ask(PAGE, cookie).status_code == 404
    assert site.ask(PAGE, site.opened()).status_code == 200


def test_one_user_does_not_take_all_connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    cookie = site.opened()
    headers = {"Host": HOST, "Cookie": cookie}
    url = f"http://127.0.0.1:{site.port}{PAGE}endless"
    limits = httpx2.Limits(max_connections=100)
    with httpx2.Client(trust_env=False, timeout=20, limits=limits) as client:
        answers = [client.send(client.build_request("GET", url, headers=headers), stream=True) for _ in range(65)]
        assert [one.status_code for one in answers].count(429) == 1
        for one in answers:
            one.close()
    eventually(lambda: site.ask(PAGE, cookie).status_code == 200)
