"""Sites with virtual clusters, and which lines of theirs are told."""

from __future__ import annotations

from pathlib import Path

from pai_install.cli.main import run
from pai_install.documents.problem import Problem
from pai_install.errors import ExitCode
from pai_install.site.load import SERVICES, read_site
from tests.unit.site.sites import CONFIG, write_site

LAYOUT = """\
machine-sku:
  master: {mem: 60Gi, cpu: {vcore: 24}}
  a100:
    computing-device: {type: nvidia.com/gpu, model: A100, count: 8}
    mem: 1000Gi
    cpu: {vcore: 96}
  t4:
    computing-device: {type: nvidia.com/gpu, model: T4, count: 4}
    mem: 200Gi
    cpu: {vcore: 40}
  epyc: {mem: 320Gi, cpu: {vcore: 40}}
  spare: {mem: 320Gi, cpu: {vcore: 40}}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: master, pai-master: "true"}
  - {hostname: s1, hostip: 10.0.0.9, machine-type: spare, pai-storage: "true"}
  - {hostname: g1, hostip: 10.0.0.2, machine-type: a100, pai-worker: "true", labels: {rack: r1, row: a}}
  - {hostname: g2, hostip: 10.0.0.3, machine-type: a100, pai-worker: "true", labels: {rack: r1}}
  - {hostname: g3, hostip: 10.0.0.4, machine-type: a100, pai-worker: "true", labels: {rack: r2}}
  - {hostname: t1, hostip: 10.0.0.5, machine-type: t4, pai-worker: "true", labels: {rack: r2}}
  - {hostname: c1, hostip: 10.0.0.6, machine-type: epyc, pai-worker: "true", labels: {rack: r2}}
"""
ABSENT = LAYOUT.replace("hostname: g3,", "hostname: g3, absent: true,")
GROUPS = """\
authentication:
  group-manager:
    admin-group: {groupname: admins, extension: {acls: {admin: true}}}
    default-group: {groupname: default}
    grouplist:
      - {groupname: Vision_1}
      - {groupname: nlp}
"""
MARK = "# <-"


def problems_of(folder: Path, services: str, *, layout: str = LAYOUT, config: str = CONFIG) -> tuple[Problem, ...]:
    """Everything that is wrong with the site."""
    return read_site(write_site(folder, layout=layout, config=config, services=services)).problems


def lines(problems: tuple[Problem, ...], severity: str) -> set[int]:
    """The lines of services-configuration.yaml that have problems of that severity."""
    assert all(Path(one.file).name == SERVICES for one in problems), problems
    return {one.line for one in problems if one.severity == severity}


def assert_refused(folder: Path, services: str, code: str) -> None:
    """The site has this error, errors at the marked lines alone, and `validate` ends with its exit code."""
    problems = problems_of(folder, services)
    assert lines(problems, "error") == marked(services), problems
    assert f"site.{code}" in {one.code for one in problems if one.is_error}
    assert run(["validate", "--site", str(folder)]) == ExitCode.SITE_INVALID


def marked(text: str) -> set[int]:
    """The lines that carry a mark."""
    return {number for number, line in enumerate(text.splitlines(), start=1) if MARK in line}
