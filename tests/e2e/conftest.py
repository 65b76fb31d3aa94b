"""Two clusters in the lab for the end-to-end tests of a run: a bare one, and one with groups and a scheduler."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pai_install.app.kubectl import ready, server_words
from pai_install.lab import LabSpec, spec_of
from pai_install.lab.keys import ssh_command
from pai_install.run.environment import cached_program
from pai_install.site import load_site

from . import existing, job_site

ROOT = Path(__file__).parents[2]
# a network of the tests' own: a lab that somebody works with stays as it is
SUBNET = "172.30.79"
# what a run ends with that changes nothing
PROOF = frozenset({"verify", "health", "scheduler-test"})
PLANTED_SECRET = "planted-Secret-7f3a"
# a site whose lab is up and installed: tests of one file run on it in seconds, and it stays
KEPT = os.environ.get("PAI_LAB_SITE", "")
# preflight stops for the existing machine's container with a device otherwise
FORCED = ("--force-check", "gpu-containers")
# what the pods of the fixture `pods` run: their own program over HTTP
SERVE = ("/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/")
# one that already runs something before the installation, and one that loses its power in the middle of it
EXISTING, LOST = "lab-worker1", "lab-worker2"


@dataclass(frozen=True)
class Cluster:
    """A site with a running cluster, and the command line to it."""

    site: Path
    quickstart: subprocess.CompletedProcess[str]

    def run(self, *words: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
        """Runs `pai-install VERB ... --site SITE` as a user does; behind the words, since a verb may be two of them."""
        return pai_install(*words, "--site", str(self.site), timeout_s=timeout_s)

    def apply(self, *words: str) -> dict[str, Any]:
        """Applies; the report as JSON, with what was printed and what the proof found wrong under `stderr`."""
        # an installation of three machines takes a quarter of an hour where others work beside it on two cores
        done = self.run("apply", "--yes", "--format", "json", *words, timeout_s=2700)
        assert done.stdout, done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exit_code"] == done.returncode
        wrong = [json.dumps(finding) for finding in report.get("findings", ()) if finding["verdict"] == "FAIL"]
        return {**report, "stderr": "\n".join([done.stderr, *wrong])}

    def converge(self, *words: str) -> dict[str, Any]:
        """Applies without the proof at the end, where a test asks the cluster something else; the report as JSON."""
        return self.apply("--no-verify", *words)

    def plan(self) -> dict[str, Any]:
        """The plan as JSON, without differences."""
        done = self.run("plan", "--no-diff", "--format", "json")
        plan: dict[str, Any] = json.loads(done.stdout)
        return plan

    def to_change(self) -> list[str]:
        """Phases in which a plan would change something: it says also that a proof is still to be made."""
        return [phase["name"] for phase in self.plan()["phases"] if phase["name"] not in PROOF]

    def on(self, machine: str, command: str) -> str:
        """Runs a command as root on a machine; what it printed."""
        return on_machine(self.site, machine, command)

    def kubectl(self, *words: str) -> str:
        """Runs kubectl; what it printed."""
        done = self.ask(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs kubectl, which may fail. Hundreds of times: without starting pai-install."""
        program, servers = kubectl_of(self.site)
        where = server_words(servers, ready)
        assert where is not None, f"no API server answers: {servers}"
        environment = {**user_environment(), "KUBECONFIG": str(self.site / ".pai" / "kubeconfig")}
        return subprocess.run(
            [program, *where, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )


@dataclass(frozen=True)
class Founding:
    """What happened before the cluster was whole; every process as it ended.

    container: of the existing machine, before anything was installed. preflight, plan: before the first run, in JSON.
    cut: the first apply, in JSON, during which a machine was switched off. status_off, plan_off: then, in JSON.
    logs_off: then, of a service on all machines.
    """

    cluster: Cluster
    container: existing.Container
    preflight: subprocess.CompletedProcess[str]
    plan: subprocess.CompletedProcess[str]
    cut: subprocess.CompletedProcess[str]
    status_off: subprocess.CompletedProcess[str]
    plan_off: subprocess.CompletedProcess[str]
    logs_off: subprocess.CompletedProcess[str]


def on_machine(site: Path, machine: str, command: str) -> str:
    """Runs a command as root on a lab machine; what it printed. Hundreds of times: without starting pai-install."""
    spec = lab_of(site)
    words = ssh_command(spec, spec.machine(machine), [f"sudo sh -c {shell_word(command)}"])
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lab_of(site: Path) -> LabSpec:
    """The machines of a site as its layout is now."""
    return _lab_of(site, (site / "layout.yaml").stat().st_mtime_ns)


@cache
def _lab_of(site: Path, written_ns: int) -> LabSpec:
    del written_ns  # another layout is another question
    return spec_of(load_site(site).site)


@cache
def kubectl_of(site: Path) -> tuple[Path, list[str]]:
    """The cluster's own kubectl, verified once, and the addresses of its control planes."""
    read = load_site(site).site
    program = cached_program(read, "kubectl")
    assert program is not None, "the components are not in the cache"
    return program, [machine.hostip for machine in read.control_planes]


def shell_word(text: str) -> str:
    """`text` as one word of a remote shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def pai_install(*words: str, timeout_s: float = 900) -> subprocess.CompletedProcess[str]:
    """Runs the bootstrap script of this checkout, as a user does."""
    return subprocess.run(
        [str(ROOT / "pai-install"), *words],
        cwd=ROOT,
        env=user_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def begun(*words: str) -> subprocess.Popen[bytes]:
    """Starts the bootstrap script as a user does, in a session of its own: a test ends it without a warning."""
    return subprocess.Popen(
        [str(ROOT / "pai-install"), *words],
        cwd=ROOT,
        env=user_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def killed(site: Path, seconds: float, *words: str) -> bool:
    """Starts a command and kills it without a warning after so long; False when it ended by itself before."""
    with begun(*words, "--site", str(site)) as process:
        time.sleep(seconds)
        alive = process.poll() is None
        if alive:
            process.send_signal(signal.SIGKILL)  # the shell of the bootstrap has become the program itself
    return alive


def killed_when(site: Path, holds: Callable[[str], bool], *words: str) -> bool:
    """Starts a command and kills it without a warning once `holds` says so of what its run has written down.

    holds: gets the run's events so far, a line for each task that ended on a machine. False when the command ended by
    itself before.
    """
    runs = site / ".pai" / "runs"
    before = set(runs.iterdir())
    with begun(*words, "--site", str(site)) as process:
        deadline = time.monotonic() + 1800
        while process.poll() is None and time.monotonic() < deadline:
            files = [run / "events.jsonl" for run in set(runs.iterdir()) - before]
            if holds("".join(file.read_text() for file in files if file.exists())):
                process.send_signal(signal.SIGKILL)  # the shell of the bootstrap has become the program itself
                return True
            time.sleep(0.1)
        process.kill()
    return False


def user_environment() -> dict[str, str]:
    """The environment without what only the tests themselves need."""
    return {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "ANSIBLE_CONFIG"}}


def lab_site(folder: Path, subnet: str) -> Path:
    """A copy of layouts/lab with other addresses and a password that must never be seen again."""
    site = folder / "lab"
    shutil.copytree(ROOT / "layouts" / "lab", site, ignore=shutil.ignore_patterns(".pai"))
    layout = site / "layout.yaml"
    layout.write_text(layout.read_text().replace("172.30.77.", f"{subnet}."))
    config = site / "config.yaml"
    config.write_text(config.read_text() + f"\npassword: {PLANTED_SECRET}\n")
    return site


@contextmanager
def bare_machines(folder: Path, subnet: str) -> Iterator[Path]:
    """The site of machines that run and have nothing installed; gone afterwards, without a trace."""
    with machines(folder, subnet) as cluster:
        yield cluster.site


@contextmanager
def machines(
    folder: Path, subnet: str, *words: str, settings: str = "", layout: Callable[[str], str] = str
) -> Iterator[Cluster]:
    """Machines that `lab up` makes by these words, with nothing installed; gone afterwards, without a trace.

    settings: further lines of config.yaml. layout: what becomes of the text of layout.yaml.
    """
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(folder, subnet)
    for name, changed in (("config.yaml", lambda text: text + settings), ("layout.yaml", layout)):
        (site / name).write_text(changed((site / name).read_text()))
    equip(site)
    up = pai_install("lab", "up", "--site", str(site), "--yes", *words, timeout_s=1800)
    try:
        assert up.returncode == 0, up.stderr
        yield Cluster(site, up)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(subnet) == []


@pytest.fixture(scope="package")
def founding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Founding]:
    """From bare machines to a cluster, the hard way; afterwards the lab is gone, and nothing of it may be left."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    site = lab_site(tmp_path_factory.mktemp("site"), SUBNET)
    try:
        yield found(site)
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(SUBNET) == []


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """The cluster that came of it, whatever an earlier file left; `quickstart` is the run that finished it."""
    return whole(kept() if KEPT else request.getfixturevalue("founding").cluster)


@pytest.fixture(scope="package")
def first_jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """What `quickstart` makes of bare machines; `quickstart` is that run, with the output of its job."""
    if os.geteuid() != 0:
        pytest.skip("the lab needs root")
    if KEPT:
        yield Cluster(Path(KEPT), pai_install("quickstart", "--site", KEPT, "--yes"))
        return
    site = job_site.write_site(tmp_path_factory.mktemp("site") / "quickstart", job_site.SUBNET)
    equip(site)
    try:
        yield Cluster(site, pai_install("quickstart", "--site", str(site), "--yes", timeout_s=3000))
    finally:
        down = pai_install("lab", "down", "--site", str(site), "--yes")
    assert down.returncode == 0, down.stderr
    assert traces(job_site.SUBNET) == []


@pytest.fixture(scope="module")
def job_cluster(request: pytest.FixtureRequest) -> Cluster:
    """The same cluster, whatever an earlier file left: it has a scheduler, groups, storages, and the console."""
    return whole(kept() if KEPT else request.getfixturevalue("first_jobs"))


def kept() -> Cluster:
    """The cluster of the lab that is kept."""
    return Cluster(Path(KEPT), subprocess.CompletedProcess([], 0, "", ""))


def whole(cluster: Cluster) -> Cluster:
    """The same, as its site has it."""
    assert cluster.quickstart.returncode == 0, cluster.quickstart.stdout + cluster.quickstart.stderr
    if cluster.to_change():
        report = cluster.converge()
        assert report["ok"], report["stderr"]
    return cluster


@pytest.fixture(scope="module")
def pods(cluster: Cluster) -> Iterator[dict[str, str]]:
    """A pod on each of two workers that answers on port 8080: worker -> the pod's address."""
    image = cluster.on(LOST, "ctr -n k8s.io images ls -q | grep ^registry.*/busybox:").split()[0]
    try:
        for worker in (EXISTING, LOST):
            place = json.dumps({"spec": {"nodeName": worker}})
            words = ("--restart=Never", f"--overrides={place}", "--command", "--", *SERVE)
            cluster.kubectl("run", f"on-{worker}", f"--image={image}", *words)
        cluster.kubectl("wait", "--for=condition=Ready", f"pod/on-{EXISTING}", f"pod/on-{LOST}", "--timeout=120s")
        where = "--output=jsonpath={.status.podIP}"
        yield {worker: cluster.kubectl("get", "pod", f"on-{worker}", where) for worker in (EXISTING, LOST)}
    finally:
        cluster.kubectl("delete", "pod", f"on-{EXISTING}", f"on-{LOST}", "--ignore-not-found", "--grace-period=0")


def until(holds: Callable[[], object], seconds: float = 90) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not (held := bool(holds())) and time.monotonic() < end:
        time.sleep(1)
    return held


def equip(site: Path) -> None:
    """Fetches the site's components into the cache, and installs the packages that build them."""
    fetched = pai_install("components", "fetch", "--site", str(site), "--yes", timeout_s=4500)
    assert fetched.returncode == 0, fetched.stderr


def found(site: Path) -> Founding:
    """Machines, one of them in use already; an installation that loses a machine; the run that completes it."""
    equip(site)
    up = pai_install("lab", "up", "--site", str(site), "--yes", *existing.options(EXISTING, LOST))
    assert up.returncode == 0, up.stderr
    early = Cluster(site, up)
    before = existing.container(early.on(EXISTING, "docker inspect at-work"))
    preflight = early.run("preflight", "--format", "json")
    plan = early.run("plan", "--no-diff", "--format", "json", *FORCED)
    cut = apply_losing(site, LOST)
    status_off = early.run("status", "--format", "json")
    plan_off = early.run("plan", "--no-diff", "--format", "json")
    logs_off = early.run("logs", "containerd", "--lines", "3")
    fault(site, LOST, "heal")
    done = pai_install("quickstart", "--site", str(site), "--yes", timeout_s=4500)
    return Founding(Cluster(site, done), before, preflight, plan, cut, status_off, plan_off, logs_off)


def fault(site: Path, machine: str, name: str) -> None:
    """Does something to a lab machine, or takes it back (`heal`)."""
    done = pai_install("lab", "fault", "--site", str(site), machine, name)
    assert done.returncode == 0, done.stderr


def apply_losing(site: Path, machine: str) -> subprocess.CompletedProcess[str]:
    """An apply during whose phase runtime a machine is switched off; the JSON report on stdout."""
    earlier = set((site / ".pai" / "runs").iterdir())
    words = ["apply", "--site", str(site), "--yes", "--format", "json", *FORCED]
    out, errors = site / "cut.out", site / "cut.err"
    with (
        out.open("w") as stdout,
        errors.open("w") as stderr,
        subprocess.Popen(
            [str(ROOT / "pai-install"), *words],
            cwd=ROOT,
            env=user_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        ) as process,
    ):
        try:
            wait_for_phase(process, site, earlier, "runtime", machine)
            fault(site, machine, "power-off")
            process.wait(timeout=1800)
        finally:
            process.kill()
    return subprocess.CompletedProcess(words, process.returncode, out.read_text(), errors.read_text())


def wait_for_phase(process: subprocess.Popen[bytes], site: Path, earlier: set[Path], phase: str, machine: str) -> None:
    """Returns once a task of the phase has ended on the machine, by what the run itself writes down."""
    deadline = time.monotonic() + 4500  # the components may have to be built first
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the run ended with {process.returncode} before phase {phase}"
        for run in set((site / ".pai" / "runs").iterdir()) - earlier:
            if _ran(run / "events.jsonl", phase, machine):
                return
        time.sleep(0.5)
    raise AssertionError(f"no task of phase {phase} ended on {machine}")


def _ran(events: Path, phase: str, machine: str) -> bool:
    lines = events.read_text().splitlines() if events.exists() else []
    return any(f'"phase": "{phase}", "host": "{machine}"' in line[:200] for line in lines)


def traces(subnet: str) -> list[str]:
    """What a lab of that subnet left behind on this host: mounts, interfaces, network namespaces, processes."""
    dashes, digits = subnet.replace(".", "-"), "".join(f"{int(part):02x}" for part in subnet.split("."))
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    links = [path.name for path in Path("/sys/class/net").iterdir()]
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    processes = subprocess.run(["ps", "-e", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [
        *(path for path in mounts if f"lab/{dashes}" in path),
        *(name for name in links if digits in name),
        *(line for line in namespaces.splitlines() if f"{subnet}." in line),
        *(line for line in processes.splitlines() if f"{subnet}." in line),
    ]
