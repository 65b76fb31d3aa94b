"""JupyterLab in a job, opened in the console: its owner alone reaches it, and it ends with its owner's rights."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection

from pai_install.lab.keys import ssh_command
from pai_install.site import load_site

from .conftest import KEPT, LOST, ROOT, Cluster, equip, lab_of, pai_install, until
from .notebook_client import NotebookBrowser
from .test_jobs import job, shown

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUP = "vision"
SERVICES = f"""\
scheduler: {{type: kueue}}
jobs: {{notebooks: {{after: 2m, then: warn}}}}
virtual-clusters:
  - {{name: default, quota: [{{sku: lab-gpu, devices: 8}}], groups: [{GROUP}, speech]}}
  - name: lent
    quota: [{{sku: lab-gpu, devices: 8}}]
    groups: [{GROUP}]
    notebooks: {{then: stop, grace: 2m}}
authentication:
  group-manager:
    grouplist: [{{groupname: {GROUP}}}, {{groupname: speech}}]
"""
IMAGE = "pai.test/jupyterlab:1"
EXAMPLE = ROOT / "examples/notebook/notebook.yaml"
PASSWORDS = {name: f"correct horse of {name}" for name in ("alice", "carol", "bob")}
PLACE = "/srv/pai-notebook"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
# a colleague's pod asks the notebook, and a port of the same pod that is no web page
TALK = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


@pytest.fixture(scope="module")
def site(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster with Kueue, three users, and an image of JupyterLab on one worker."""
    services = cluster.site / "services-configuration.yaml"
    before = services.read_text() if services.exists() else None
    services.write_text(SERVICES)
    try:
        equip(cluster.site)
        report = cluster.converge()
        assert report["ok"], report["stderr"]
        notebook_image(cluster, LOST, tmp_path_factory.mktemp("packages"))
        add_users(cluster)
        yield cluster
    finally:
        cluster.ask("delete", "jobs", "--all", f"--namespace={GROUP}", "--timeout=60s")
        for name in PASSWORDS:
            user(cluster, "remove", name, "--yes")
        if not KEPT:
            cluster.on(LOST, f"ctr --namespace=k8s.io images rm {IMAGE}")
            services.unlink() if before is None else services.write_text(before)
            report = cluster.converge()
    assert KEPT or report["ok"], report["stderr"]


def add_users(cluster: Cluster) -> None:
    """Adds alice and her colleague carol, and bob of another group, with passwords."""
    for name, group in (("alice", GROUP), ("carol", GROUP), ("bob", "speech")):
        pai_install("user", "remove", name, "--site", str(cluster.site), "--yes")
        done = user(cluster, "add", name, "--group", group, "--yes")
        assert done.returncode == 0, done.stderr
        link = user(cluster, "password", name).stdout.splitlines()[0]
        stranger(cluster).set_password(link, PASSWORDS[name])


def notebook_image(cluster: Cluster, worker: str, folder: Path) -> None:
    """Makes the image on a machine, of its own Python and wheels of the package index."""
    if KEPT and IMAGE in cluster.on(worker, "ctr --namespace=k8s.io images ls -q"):
        return
    version = cluster.on(worker, "python3 -c 'import sys; print(*sys.version_info[:2], sep=chr(46))'").strip()
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder / "packages"), "--no-compile"]
    words += ["--only-binary=:all:", f"--python-version={version}", *(f"--platform={one}" for one in PLATFORMS)]
    subprocess.run([*words, "jupyterlab", "ipykernel"], check=True)
    here = Path(__file__).parent
    for name in ("python_image.py", "notebook_image.py"):
        written = base64.b64encode((here / name).read_bytes()).decode()
        cluster.on(worker, f"mkdir -p {PLACE} && echo {written} | base64 -d >{PLACE}/{name}")
    spec = lab_of(cluster.site)
    login = ssh_command(spec, spec.machine(worker), [f"sudo tar -C {PLACE} -x"])
    with subprocess.Popen(["tar", "-C", str(folder), "-c", "packages"], stdout=subprocess.PIPE) as packed:
        subprocess.run(login, stdin=packed.stdout, check=True)
    cluster.on(worker, f"python3 {PLACE}/notebook_image.py {IMAGE} {PLACE}/packages && rm -r {PLACE}")


def user(cluster: Cluster, verb: str, *words: str) -> CompletedProcess[str]:
    return pai_install("user", verb, "--site", str(cluster.site), *words)


def notebook_file(folder: Path, name: str, own_s: int) -> Path:
    """The example, with the image of this machine, and what the lab has. own_s: the limits of JupyterLab."""
    found = yaml.safe_load(EXAMPLE.read_text())
    found["metadata"]["name"] = name
    spec = found["spec"]["template"]["spec"]
    # the one machine that has the image
    spec["nodeSelector"] = {"kubernetes.io/hostname": LOST}
    (container,) = spec["containers"]
    container["image"] = IMAGE
    options = [word.replace("=3600", f"={own_s}") for word in container["command"][2:]]
    cull = f"--MappingKernelManager.cull_interval={min(300, own_s // 2)}"
    container["command"] = ["python3", "-m", "jupyterlab", "--allow-root", *options, cull]
    for amounts in container["resources"].values():
        amounts.update({"cpu": "400m", "memory": "400Mi"})
    container["volumeMounts"] = [{"name": "work", "mountPath": "/root/work"}]
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(found))
    return path


def submitted(site: Cluster, folder: Path, name: str, cluster: str = "default", own_s: int = 3600) -> str:
    """A notebook of alice that runs; the address of its pod."""
    path = notebook_file(folder, name, own_s)
    done = job(site, "submit", str(path), "--group", GROUP, "--user", "alice", "--vc", cluster)
    assert done.returncode == 0, done.stderr
    assert until(lambda: shown(site, name)["state"] == "RUNNING", 180), shown(site, name)
    pod = ("get", "pods", f"--namespace={GROUP}", f"--selector=job-name={name}", "--output=json")
    (found,) = json.loads(site.kubectl(*pod))["items"]
    return str(found["status"]["podIP"])


def browser(site: Cluster, name: str) -> NotebookBrowser:
    """A person who signed in."""
    made = stranger(site)
    made.sign_in(name, PASSWORDS[name])
    return made


def stranger(site: Cluster) -> NotebookBrowser:
    """A browser without cookies, at the console."""
    identity = json.loads((site.site / ".pai/registry.json").read_text())
    trust = ssl.create_default_context(cadata="".join(one["certificate"] for one in identity["authorities"]))
    (leader,) = load_site(site.site).site.control_planes
    return NotebookBrowser(leader.hostip, trust)


@pytest.fixture(scope="module")
def address(site: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """alice's job `note`, which runs."""
    return submitted(site, tmp_path_factory.mktemp("job"), "note")


@pytest.fixture(scope="module")
def alice(site: Cluster, address: str) -> NotebookBrowser:
    """The owner, with the notebook open."""
    del address
    made = browser(site, "alice")
    opened(made, "note")
    return made


def opened(person: NotebookBrowser, name: str) -> str:
    """The address of a notebook, once the program in it answers."""
    base = f"{person.pages}/open/alice~{name}/"
    answer = person.open(f"alice~{name}")
    assert (answer.status_code, answer.headers.get("location")) == (303, base), answer.text
    assert until(lambda: person.ask("GET", f"{base}api").status_code == 200, 120)
    return base


def test_the_owner_runs_a_cell(alice: NotebookBrowser) -> None:
    base = f"{alice.pages}/open/alice~note/"
    assert "JupyterLab" in alice.ask("GET", f"{base}lab").text
    assert alice.run(base, "import os; print(6 * 7, os.environ['PAI_USER'])").strip() == "42 alice"


def test_the_owner_has_a_shell(alice: NotebookBrowser) -> None:
    base = f"{alice.pages}/open/alice~note/"
    headers = {"Origin": alice.pages, "X-XSRFToken": alice.cookies["_xsrf"]}
    made = alice.ask("POST", f"{base}api/terminals", headers=headers)
    assert made.status_code == 200, made.text
    with alice.socket(f"{base}terminals/websocket/{made.json()['name']}") as socket:
        socket.send(json.dumps(["stdin", "echo $((6*7)) of the shell\r"]))
        text = ""
        while "42 of the shell" not in text:
            text += str(socket.recv(30))


def test_the_page_of_the_job_has_the_link_for_its_owner_alone(site: Cluster, alice: NotebookBrowser) -> None:
    carol = browser(site, "carol")
    for person, shows in ((alice, True), (carol, False)):
        page = person.ask("GET", f"{person.origin}/jobs/alice~note")
        assert (page.status_code, "/jobs/alice~note/open" in page.text) == (200, shows)


@pytest.mark.parametrize("name", ["carol", "bob"])
def test_nobody_else_opens_it(site: Cluster, alice: NotebookBrowser, name: str) -> None:
    person = browser(site, name)
    assert person.open("alice~note").status_code in (403, 404)
    base = f"{person.pages}/open/alice~note/"
    assert person.ask("GET", f"{base}api/kernels").status_code == 403
    with pytest.raises(InvalidStatus, match="403"):
        person.socket(f"{base}api/kernels/x/channels")


def test_the_network_closes_its_port_to_a_colleague_and_to_pods_outside(site: Cluster, address: str) -> None:
    for namespace in (GROUP, "default"):
        name = f"asks-{namespace}"
        container = {"name": "main", "image": IMAGE, "command": ["python3", "-c", "import time; time.sleep(600)"]}
        spec = {"containers": [container], "nodeName": LOST, "terminationGracePeriodSeconds": 0}
        site.kubectl("run", name, f"--namespace={namespace}", "--image=x", f"--overrides={json.dumps({'spec': spec})}")
        try:
            site.kubectl("wait", "--for=condition=Ready", f"pod/{name}", f"--namespace={namespace}", "--timeout=60s")
            time.sleep(2)  # the network knows the pod
            ask = ("exec", name, f"--namespace={namespace}", "--", "python3", "-c", TALK, address)
            assert "timed out" in site.ask(*ask, "8888").stderr
            assert "refused" in site.ask(*ask, "8889").stderr, "the pod itself is reached"
        finally:
            site.ask("delete", "pod", name, f"--namespace={namespace}", "--wait=false")


def test_a_worker_does_not_reach_it_from_elsewhere(site: Cluster, address: str) -> None:
    """A process on another machine that is no control plane."""
    asked = f"python3 -c '{TALK}' {address} 8888 2>&1 || true"
    assert "timed out" in site.on("lab-worker1", asked)


def read_for(socket: ClientConnection, seconds: float) -> None:
    """Reads what a kernel says."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        socket.recv(max(0.1, end - time.monotonic()))


def ended_after(socket: ClientConnection, cause: Callable[[], object], seconds: float) -> float:
    """Seconds from a cause to the end of a WebSocket."""
    begin = time.monotonic()
    cause()
    caused = time.monotonic()
    with pytest.raises(ConnectionClosed):
        read_for(socket, seconds)
    sys.stderr.write(f"ended {time.monotonic() - caused:.2f} s after a cause of {caused - begin:.2f} s\n")
    return time.monotonic() - caused


def test_a_stop_ends_it(site: Cluster, alice: NotebookBrowser, tmp_path: Path) -> None:
    submitted(site, tmp_path, "short")
    base = opened(alice, "short")
    with alice.kernel(base) as socket:
        assert NotebookBrowser.cell(socket, "print(1)").strip() == "1"
        assert ended_after(socket, lambda: job(site, "stop", "short", "--yes"), 2) < 2
    assert alice.ask("GET", f"{base}api").status_code in (403, 404)


def test_an_open_tab_keeps_no_unused_notebook(site: Cluster, alice: NotebookBrowser, tmp_path: Path) -> None:
    """JupyterLab ends itself without a visible tab (docs/examples.md), else by the limit of its virtual cluster."""
    for name in ("hidden", "visible"):
        submitted(site, tmp_path, name, "lent", own_s=60)
    tabs = [alice.kernel(opened(alice, name)) for name in ("hidden", "visible")]
    assert [NotebookBrowser.cell(tab, "print(3)").strip() for tab in tabs] == ["3", "3"]
    polled = f"{alice.pages}/open/alice~visible/api/kernels"

    def is_in(name: str, state: str) -> bool:
        alice.ask("GET", polled)  # as JupyterLab does, every 10 s, while its tab is visible
        return bool(shown(site, name)["state"] == state)

    assert until(lambda: is_in("hidden", "SUCCEEDED"), 400), shown(site, "hidden")
    assert until(lambda: is_in("visible", "STOPPED"), 600), shown(site, "visible")
    found = shown(site, "visible")
    assert (found["stopped_by"], found["stopped_why"].partition(" for ")[0]) == (
        "pai-install",
        "no one has used this job",
    )
    for tab in tabs:
        with pytest.raises(ConnectionClosed):
            read_for(tab, 10)


def test_an_unused_notebook_is_warned_of(site: Cluster, alice: NotebookBrowser) -> None:
    """docs/idle-gpus.md: the limit of notebooks counts for the template."""
    del alice
    assert until(lambda: shown(site, "note")["warned"], 400)
    assert shown(site, "note")["state"] == "RUNNING"


def test_a_removed_user_is_out(site: Cluster, alice: NotebookBrowser) -> None:
    base = opened(alice, "note")
    account = ("delete", "serviceaccount", "alice", "--namespace=pai-users")
    with alice.kernel(base) as socket:
        assert NotebookBrowser.cell(socket, "print(2)").strip() == "2"
        assert ended_after(socket, lambda: site.kubectl(*account), 2) < 2
    assert alice.ask("GET", f"{base}api").status_code == 403
    with pytest.raises(InvalidStatus, match="403"):
        alice.socket(f"{base}api/kernels/x/channels")
    assert user(site, "remove", "alice", "--yes").returncode == 0
