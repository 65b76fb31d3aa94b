"""Examples in guides: what planner and reports say of a small site and of machines as they were observed."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from pai_install.operations.install import Install
from pai_install.plan.model import Inventory, Plan
from pai_install.plan.observation import Observation
from pai_install.plan.observed import DockerFacts, Membership, Observed, RoleRecord
from pai_install.plan.phases import PHASES
from pai_install.report.causes import cause_of
from pai_install.report.console import show_outcome
from pai_install.report.data import run_report
from pai_install.report.diffs import ChangeCollector, FileChange, changes_summary
from pai_install.report.model import Counts, Failure, HostResult, HostStatus, Outcome, PhaseResult
from pai_install.report.notices import TaskFinished
from pai_install.report.planned import plan_summary, plan_text
from pai_install.site import Site, load_site
from tests.ansible_path import module_util
from tests.docs.markdown import with_generated

ROOT = Path(__file__).parents[2]
LAYOUT = """
machine-sku:
  cpu: {mem: 64Gi, cpu: {vcore: 16}}
machine-list:
  - {hostname: master, hostip: 10.0.0.10, machine-type: cpu, pai-master: "true"}
"""
WORKERS = {"worker-3": 13, "worker-7": 17, "worker-8": 18, "worker-9": 19}
DOCKER_TASKS = "docker_config"
SYSCTL = "/etc/sysctl.d/zz-pai-install.conf"
# only where a site names labels, GPUs or storage
NOT_WANTED = {"node_exporter", "node_labels", "device_plugin", "storage_server", "storage_client", "nvidia_driver"}
LOG_SIZE = "container_runtime_log_max_size"
NO_ROUTE = "ssh: connect to host 10.0.0.17 port 22: No route to host"


def with_plan(text: str) -> str:
    """docs/reading-a-plan.md with its example."""
    return with_generated(text, _indented(plan_shown()))


def plan_shown() -> str:
    """What `plan` prints of the example."""
    plan, changes = _plan_of_example(), _changes()
    return f"{plan_text(plan)}\n{changes_summary(changes)}\n{plan_summary(plan, changes)}"


def _indented(text: str) -> Iterator[str]:
    """A block of code; Markdown wants an empty line before and after it."""
    yield from ("", *(f"    {line}".rstrip() for line in text.splitlines()), "")


def _plan_of_example() -> Plan:
    """worker-3 was changed by hand and has an older log size, worker-7 is away, worker-8 and worker-9 are new."""
    site = _site()
    wanted = {machine.hostname: _settings(site, machine.hostname) for machine in site.present_machines}
    inventory = Inventory(
        groups={"control_plane": ("master",), "workers": tuple(WORKERS)},
        shared_vars={},
        host_vars={host: {"pai_settings": settings} for host, settings in wanted.items()},
    )
    machines = {
        "master": Observed(hostname="master", roles=_records(wanted["master"])),
        "worker-3": _changed_by_hand(wanted["worker-3"]),
        **{host: Observed(hostname=host) for host in ("worker-8", "worker-9")},
    }
    return Install().plan(site, Observation(inventory, machines, unreachable={"worker-7": NO_ROUTE}))


def _site() -> Site:
    with TemporaryDirectory() as folder:
        rows = (
            f'  - {{hostname: {name}, hostip: 10.0.0.{last}, machine-type: cpu, pai-worker: "true"}}\n'
            for name, last in WORKERS.items()
        )
        (Path(folder) / "layout.yaml").write_text(LAYOUT + "".join(rows))
        (Path(folder) / "config.yaml").write_text("user: pai\npassword: example\n")
        return load_site(Path(folder)).site


def _settings(site: Site, host: str) -> dict[str, dict[str, str]]:
    """Role -> setting -> digest, for a machine."""
    phases = [phase for phase in PHASES if any(machine.hostname == host for machine in phase.machines(site))]
    roles = {role for phase in phases for role in phase.roles} - NOT_WANTED
    return {role: {"role": "1"} | ({LOG_SIZE: "2"} if role == "container_runtime" else {}) for role in roles}


def _records(settings: Mapping[str, Mapping[str, str]]) -> dict[str, RoleRecord]:
    return {role: RoleRecord(settings=found) for role, found in settings.items()}


def _changed_by_hand(settings: Mapping[str, Mapping[str, str]]) -> Observed:
    records = _records(settings)
    missing = {"kind": "file", "path": f"/nonexistent{SYSCTL}", "sha256": "", "mode": "0644"}
    drift = tuple(problem.replace("/nonexistent", "") for problem in module_util("pai_managed").drift([missing]))
    older = {**settings["container_runtime"], LOG_SIZE: "1"}
    records["base"] = RoleRecord(settings=settings["base"], drift=drift)
    records["container_runtime"] = RoleRecord(settings=older, readers=("containerd.service", "docker.service"))
    return Observed(
        hostname="worker-3",
        roles=records,
        kubernetes=Membership(node=True, joined=True),
        services=("containerd.service", "docker.service"),
        docker=DockerFacts(containers=2),
    )


def _changes() -> tuple[FileChange, ...]:
    """As check mode finds them."""
    collector = ChangeCollector()
    daemon = "/etc/docker/daemon.json"
    for phase, task, path, before, after in (
        ("base", task_name("base", "main", "pai_kernel"), SYSCTL, "", "net.ipv4.ip_forward = 1\n"),
        (
            "runtime",
            task_name("container_runtime", "docker_config", "pai_files"),
            daemon,
            _daemon("50m"),
            _daemon("100m"),
        ),
    ):
        diff = {"before": before, "after": after, "before_header": path, "after_header": path}
        collector.notice(TaskFinished(phase, "worker-3", task, "", "changed", 0.1, {"diff": [diff]}))
    return collector.changes


def _daemon(size: str) -> str:
    settings = {"log-driver": "json-file", "log-opts": {"max-file": "5", "max-size": size}}
    return json.dumps(settings, indent=4) + "\n"


def task_name(role: str, file: str, module: str) -> str:
    """The name of a role's task that runs a module."""
    tasks = yaml.safe_load((ROOT / task_file(role, file)).read_text())
    return next(str(task["name"]) for task in tasks if module in task)


def task_file(role: str, file: str) -> str:
    """Path of a role's task file."""
    return f"roles/{role}/tasks/{file}.yml"


def _line(path: str, text: str) -> int:
    return next(number for number, line in enumerate((ROOT / path).read_text().splitlines(), start=1) if text in line)


def with_report(text: str, *after: Iterable[str]) -> str:
    """docs/reports.md with its examples; after: the parts below them."""
    outcome = _outcome()
    stream = io.StringIO()
    show_outcome(outcome, stream)
    shown = "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
    data = run_report(outcome).as_json()
    failed = next(phase["hosts"]["worker-8"] for phase in data["phases"] if phase["name"] == "runtime")
    return with_generated(text, _indented(shown), _indented(json.dumps(failed, indent=2)), *after)


def _outcome() -> Outcome:
    """One machine whose package database is busy."""
    fine = HostResult(HostStatus.OK, Counts(ok=1, tasks=1))
    said = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"
    known = cause_of(said)
    path, task = (
        task_file("container_runtime", "docker"),
        task_name("container_runtime", "docker", "ansible.builtin.apt"),
    )
    failure = Failure(
        "worker-8",
        task=task,
        task_path=f"{path}:{_line(path, task)}",
        message=said,
        cause=known.cause if known else "",
        remedy=known.remedy if known else "",
    )
    failed = HostResult(HostStatus.FAILED, Counts(ok=7, changed=5, failed=1, tasks=8), failure)
    left = HostResult(HostStatus.LEFT, why="failed in phase runtime")
    return Outcome(
        duration_s=83.0,
        phases=(
            PhaseResult("observe", "Observe the machines", 1.3, dict.fromkeys(("master", "worker-8"), fine)),
            PhaseResult("runtime", "Install the container runtimes", 81.7, {"worker-8": failed}),
            PhaseResult("workers", "Join the workers", 0.0, {"worker-8": left}),
        ),
    )
