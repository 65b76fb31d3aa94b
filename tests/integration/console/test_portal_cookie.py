"""The cookie of OpenPAI's web portal, which has a token of the API: for queries of its charts, and for nothing else."""

from __future__ import annotations

from starlette.testclient import TestClient

from tests.integration.console.conftest import HOST, PASSWORDS, Console, console, own, users
from tests.integration.console.test_jobs import Served, served

__all__ = ["console", "own", "served", "users"]
QUERY = "/prometheus/api/v1/query?query=node_uname_info"
# who may ask is told that the site has no monitoring
ANSWERED = "NotImplementedError"


def code(web: TestClient, path: str, **cookies: str) -> str:
    """The code of an error."""
    browser = TestClient(web.app, base_url=f"https://{HOST}", cookies=cookies)
    return str(browser.get(path).json()["code"])


def test_it_has_the_rights_of_its_token(served: Served, console: Console) -> None:
    _, web = served
    dora, alice = (console.token(name, PASSWORDS[name]) for name in ("dora", "alice"))
    assert code(web, QUERY, token=dora) == ANSWERED
    assert code(web, QUERY, token=alice) == "ForbiddenUserError"
    assert code(web, QUERY, token=f"{dora[:-4]}AAAA") == "UnauthorizedUserError"
    assert code(web, QUERY, token="x") == "UnauthorizedUserError"
    assert code(web, QUERY) == "UnauthorizedUserError"


def test_it_ends_with_the_token(served: Served, console: Console) -> None:
    _, web = served
    dora = console.token("dora", PASSWORDS["dora"])
    assert console.ask("DELETE", "/api/v2/authn/basic/logout", dora)["status"] == 200
    assert code(web, QUERY, token=dora) == "UnauthorizedUserError"


def test_the_api_takes_no_cookie(served: Served, console: Console) -> None:
    """A page of a stranger could send it."""
    _, web = served
    dora = console.token("dora", PASSWORDS["dora"])
    for path in ("/rest-server/api/v2/jobs", "/rest-server/api/v2/users", "/rest-server/api/v2/kubernetes/nodes"):
        assert code(web, path, token=dora) == "UnauthorizedUserError"
