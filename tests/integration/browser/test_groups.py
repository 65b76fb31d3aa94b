"""Two groups in Chromium that must not see each other, and an administrator who sees both. Names try to be scripts."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pai_install.site import load_site
from tests.integration.browser.driver import driven, person
from tests.integration.browser.machine import JOBSETS, kubelet, patch, start_job
from tests.integration.control_plane import Api
from tests.integration.openpai.conftest import Console, console_of, installed_site, large_site
from tests.integration.openpai.test_requests_of_clients import VSCODE_JOB

PEOPLE = {"root": ("admins",), "lion": ("lions",), "zebra": ("zebras",)}
SCRIPT = "<script>window.pwned=1</script><img src=x onerror='window.pwned=1'>\"'>"
WORDS = {"lion": "lion", "zebra": "zebra"}
JOB = {name: f"{name}-train" for name in WORDS}
TEMPLATE = {
    "title": "zebra-template",
    "tags": "zebra-tag",
    "description": f"zebra {SCRIPT} {{{{ 7 * 7 }}}} javascript:alert(1)",
    "content": yaml.safe_dump({**VSCODE_JOB, "name": "zebra-from-template"}),
}
SERVICES = """
    grouplist:
      - groupname: lions
        extension: {acls: {storageConfigs: [lion-data]}}
      - groupname: zebras
        extension: {acls: {storageConfigs: [zebra-data]}}
storages:
  - {name: lion-data, type: hostPath, path: /mnt/lion, access-mode: ReadWriteOnce}
  - {name: zebra-data, type: hostPath, path: /mnt/zebra, access-mode: ReadWriteOnce}
"""
CLUSTERS = """
virtual-clusters:
  - {name: default, groups: [lions], quota: [{sku: gpu, machines: 1}]}
  - {name: stripes, groups: [zebras], quota: [{sku: gpu, machines: 1}]}
"""
# those of a member
PAGES = (
    *("/", "/jobs", "/jobs?keyword=train", "/jobs?order=jobName,ASC", "/jobs/new", "/templates", "/templates?search=e"),
    *("/virtual-clusters", "/virtual-clusters/default", "/virtual-clusters/stripes", "/nodes", "/nodes/worker-1"),
    *("/users", "/storages", "/account"),
)


@pytest.fixture(scope="module")
def console(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console of two groups, each with a virtual cluster and a storage."""
    folder = tmp_path_factory.mktemp("console")
    large_site(folder / "site")
    services = folder / "site/services-configuration.yaml"
    head, _, rest = services.read_text().partition("virtual-clusters:")
    _, _, rights = rest.partition("authentication:")
    services.write_text(f"{head}{CLUSTERS}\nauthentication:{rights.partition('    grouplist:')[0]}{SERVICES}")
    with console_of(installed_site(api, load_site(folder / "site").site, PEOPLE), folder) as made:
        yield made


def strange(owner: str) -> list[tuple[str, str]]:
    """Requests for what a person of the other group has."""
    job = f"/jobs/{owner}~{JOB[owner]}"
    looks = [job, f"{job}/log/worker/0", f"{job}/changes", f"{job}/open", f"/jobs/new?from={owner}~{JOB[owner]}"]
    looks += [f"/templates/new?from={owner}~{JOB[owner]}", f"/users/{owner}", "/health", "/services", "/runs"]
    looks += ["TEMPLATE?group=zebras", "TEMPLATE"] if owner == "zebra" else []
    acts = [f"{job}/stop", f"/users/{owner}", *(["TEMPLATE?group=zebras"] if owner == "zebra" else [])]
    return [*(("GET", it) for it in looks), *(("POST", it) for it in acts)]


@pytest.fixture(scope="module")
def seen(console: Console, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the browser found."""
    with kubelet(console, says=f"zebra {SCRIPT}") as port:
        for name, space in (("lion", "lions"), ("zebra", "zebras")):
            cluster = {"lion": "default", "zebra": "stripes"}[name]
            role = VSCODE_JOB["taskRoles"]["train"]
            job = {**VSCODE_JOB, "name": JOB[name], "taskRoles": {"worker": role}}
            text = yaml.safe_dump({**job, "defaults": {"virtualCluster": cluster}})
            status, answer = console.ask("POST", "/api/v2/jobs", console.token(name), text, "text/yaml")
            assert status == 202, answer
            tag = f"/api/v2/jobs/{name}~{JOB[name]}/tag"
            assert until_answered(console, "PUT", tag, name, {"value": f"{name}-tag"}) == 200
            start_job(console.admin, port, JOB[name], space, name)
        disguise(console.admin)
        people: dict[str, Any] = {
            name: {**person(name, console.password(name)), "pages": [*PAGES, own(name)], "strange": strange(other)}
            for name, other in (("zebra", "lion"), ("lion", "zebra"))
        }
        people["zebra"]["template"] = TEMPLATE
        given = {
            "url": console.url,
            "people": people,
            "administrator": person("root", console.password("root")),
            "pages": [*PAGES, *map(own, WORDS), f"{own('zebra')}/log/worker/0", "/users/zebra", "/health"],
        }
        return driven("groups.js", given, tmp_path_factory.mktemp("home"))


def until_answered(console: Console, method: str, path: str, name: str, body: Any) -> int:
    """The status of an answer, as soon as the console knows the job."""
    token, end = console.token(name), time.monotonic() + 30
    while (status := console.ask(method, path, token, body)[0]) == 404 and time.monotonic() < end:
        time.sleep(0.3)
    return status


def own(name: str) -> str:
    """The page of a job."""
    return f"/jobs/{name}~{JOB[name]}"


def disguise(api: Api) -> None:
    """Names and events that a member could write with kubectl, and that no form of the console takes."""
    path = JOBSETS.format("zebras", JOB["zebra"])
    notes = {"pai-install/priority": SCRIPT, "pai-install/tags": json.dumps([SCRIPT])}
    patch(api, path, {"metadata": {"annotations": notes}})
    uid = api.ask("GET", path)["metadata"]["uid"]
    about = {"kind": "JobSet", "apiVersion": "jobset.x-k8s.io/v1alpha2", "name": JOB["zebra"], "namespace": "zebras"}
    event = {"reason": "FailedCreate", "type": "Warning", "message": f"zebra {SCRIPT}", "involvedObject": about}
    metadata = {"name": "zebra-event", "namespace": "zebras"}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z"}
    about["uid"] = uid
    api.apply({"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event, **times})


@pytest.mark.parametrize(("name", "other"), [("lion", "zebra"), ("zebra", "lion")])
def test_a_member_sees_its_own_group_alone(seen: Any, name: str, other: str) -> None:
    pages = seen["pages"][name]
    assert {status for status, _ in pages.values()} == {200}
    assert [address for address, (_, text) in pages.items() if other in text] == []
    for address in ("/", "/jobs", "/jobs?keyword=train", "/nodes", "/nodes/worker-1", own(name)):
        assert JOB[name] in pages[address][1], address
    assert f"{name}-data" in pages["/storages"][1]


@pytest.mark.parametrize("name", WORDS)
def test_a_strangers_things_are_as_things_that_do_not_exist(seen: Any, name: str) -> None:
    found = {(method, address): status for method, address, status, _ in seen["strangers"][name]}
    assert {key: status for key, status in found.items() if status not in (403, 404)} == {}


def test_nothing_was_stopped(seen: Any, console: Console) -> None:
    for name in WORDS:
        status, text = console.ask("GET", f"/api/v2/jobs/{name}~{JOB[name]}", console.token(name))
        assert (status, json.loads(text)["jobStatus"]["state"]) == (200, "RUNNING")


def test_an_administrator_sees_both(seen: Any) -> None:
    jobs = seen["pages"]["root"]["/jobs"][1]
    assert JOB["lion"] in jobs
    assert JOB["zebra"] in jobs
    assert {status for status, _ in seen["pages"]["root"].values()} == {200}


def test_hostile_names_are_text(seen: Any) -> None:
    assert (seen["pwned"], seen["errors"], seen["foreign"]) == ([], [], [])
    job, log = (seen["pages"]["root"][f"{own('zebra')}{end}"][1] for end in ("", "/log/worker/0"))
    for page in (job, log):
        assert "zebra &lt;script&gt;window.pwned" in page
    assert "{{ 7 * 7 }}" in seen["pages"]["zebra"]["/templates"][1]


def test_pages_with_hostile_names_are_accessible_and_fit(seen: Any) -> None:
    assert (seen["violations"], seen["wide"]) == ([], [])
