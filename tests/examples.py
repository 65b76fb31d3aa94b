"""The jobs of examples/: what `job validate` says of them, which schedulers take them, and how they run in the lab.

`python -m tests.docs` writes what they mean into docs/examples.md.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pai_install.errors import PaiError
from pai_install.jobs.kubernetes import KubernetesFile
from pai_install.jobs.place import JobOwner, place, seat
from pai_install.jobs.read import JobReading, read_job_text
from pai_install.profile.project import profile_of
from pai_install.report.job import readings_text
from pai_install.schedulers.admission import reject
from pai_install.schedulers.defaulting import contradictions
from pai_install.schedulers.job_check import check_job
from pai_install.schedulers.jobs import objects_of
from pai_install.scheduling.job_queue import queue_of
from pai_install.scheduling.model import BACKENDS, PRIORITIES, Backend
from pai_install.scheduling.read import scheduling_of
from pai_install.site.load import load_site
from pai_install.site.model import Site

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples"
SEARCH = "elastic-search/trials.py"
# of a search that a page can show
SHORT_SEARCH = ("--rates=0.1,0.01", "--widths=64")
# the lab's image has no Jupyter and no sshd
NOT_IN_THE_LAB = frozenset({"notebook/notebook.yaml", "ssh/server.yaml"})
GROUP = "vision"
LAYOUT = """\
machine-sku:
  control: {mem: 64Gi, cpu: {vcore: 16}}
  a100:
    computing-device: {type: nvidia.com/gpu, model: A100, count: 8}
    mem: 1000Gi
    cpu: {vcore: 96}
  epyc: {mem: 320Gi, cpu: {vcore: 40}}
machine-list:
  - {hostname: control, hostip: 10.0.0.1, machine-type: control, pai-master: "true"}
  - {hostname: gpu-1, hostip: 10.0.0.2, machine-type: a100, pai-worker: "true"}
  - {hostname: gpu-2, hostip: 10.0.0.3, machine-type: a100, pai-worker: "true"}
  - {hostname: gpu-3, hostip: 10.0.0.4, machine-type: a100, pai-worker: "true"}
  - {hostname: cpu-1, hostip: 10.0.0.5, machine-type: epyc, pai-worker: "true"}
"""
SERVICES = """\
scheduler: {{type: {backend}{operator}}}
virtual-clusters:
  - {{name: default, quota: [{{sku: a100, devices: 16}}, {{sku: epyc, cores: 36}}]}}
  - {{name: product, quota: [{{sku: a100, devices: 8}}]}}
storages:
  - {{name: data, type: nfs, server: nas.example.com, path: /data}}
authentication:
  group-manager:
    admin-group: {{groupname: admins}}
    default-group: {{groupname: default}}
    grouplist:
      - {{groupname: vision, extension: {{acls: {{storageConfigs: [data]}}}}}}
"""
CONFIG = "user: pai\npassword: example\n"
# what a lab's image has, and its machines: two cores, which all share
LAB_PROGRAM = "/opt/program.py"
_FETCHED = re.compile(r"curl -fsSL \S+ \| tar xz --strip-components=2 && ")
_PROGRAM = re.compile(r"(python3,? )[\w./-]+\.py")
_IMAGE = re.compile(r'("image": "|\bimage: |\buri: )[^\s"]+')
_SIZES = (
    (re.compile(r'"(memoryMB)": \d+'), r'"\1": 128'),
    (re.compile(r'"(cpuNumber)": \d+'), r'"\1": 1'),
    (re.compile(r"\bcpu: \d+, memoryMB: \d+"), "cpu: 1, memoryMB: 128"),
    (re.compile(r"\bshmMB: \d+"), "shmMB: 64"),
    (re.compile(r"\bcpu: \d+, memory: \d+[GM]i"), "cpu: 50m, memory: 64Mi"),
)


def names() -> list[str]:
    """All examples, by their path below examples/."""
    found = [path for ending in ("json", "yaml") for path in FOLDER.rglob(f"*.{ending}")]
    return sorted([*(path.relative_to(FOLDER).as_posix() for path in found), SEARCH])


def text_of(name: str, *words: str) -> str:
    """The job of an example; words: what is given to one that is a program."""
    path = FOLDER / name
    if path.suffix != ".py":
        return path.read_text()
    return subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, check=True).stdout


def lab_variant(text: str, image: str) -> str:
    """A job as the lab can run it: with another image and its program, as little processor and memory as there is.

    What tells the program who and where it is, roles, instances, devices, policies stay.
    """
    text = _PROGRAM.sub(rf"\g<1>{LAB_PROGRAM}", _FETCHED.sub("", text))
    text = _IMAGE.sub(rf"\g<1>{image}", text)
    for pattern, instead in _SIZES:
        text = pattern.sub(instead, text)
    return text


@functools.cache
def site_of(backend: Backend) -> Site:
    """A site with two virtual clusters, a storage and the group."""
    with tempfile.TemporaryDirectory() as folder:
        # HiveD's sites have none
        operator = "" if backend == "hived" else ", training-operator: true"
        texts = {
            "layout": LAYOUT,
            "config": CONFIG,
            "services-configuration": SERVICES.format(backend=backend, operator=operator),
        }
        for name, text in texts.items():
            (Path(folder) / f"{name}.yaml").write_text(text)
        return load_site(Path(folder)).site


def reading(name: str, backend: Backend) -> JobReading:
    """What `job validate --group vision` finds."""
    shown = Path("examples") / name
    if name == SEARCH:
        shown = Path("search.yaml")
    return check_job(read_job_text(text_of(name, *SHORT_SEARCH), shown), profile_of(site_of(backend)), GROUP)


def takes(name: str, backend: Backend) -> bool:
    """Whether a site with that scheduler takes an example: as `job validate` and `job submit` say."""
    job, site, owner = reading(name, backend).job, site_of(backend), JobOwner("alice", GROUP, GROUP)
    scheduling = scheduling_of(site)
    assert scheduling is not None
    if job is None:
        return False
    if isinstance(job, KubernetesFile):
        said = {one.name: queue_of(one.content, one.kind) for one in job.jobs}
        usual = {one: next((it for it in PRIORITIES if it == said[one].priority), None) for one in said}
        places = {one: seat(scheduling, owner, said[one].cluster or None, usual[one]) for one in said}
        contradictions(job, places)
        reject(job, places)
        return not any(problem.is_error for document in job.documents for problem in document.problems)
    where = place(job, scheduling, owner, profile_of(site).grants, (None, None))
    try:
        return bool(list(objects_of(job, where)))
    except PaiError:
        return False


def backends_of(name: str) -> Mapping[Backend, bool]:
    """Which schedulers take an example."""
    return {backend: takes(name, backend) for backend in BACKENDS}


def validated(name: str) -> str:
    """What `job validate` prints of an example on a site that takes it."""
    backend = next(backend for backend, good in backends_of(name).items() if good)
    text = readings_text([reading(name, backend)])
    # the list of all variables is long, and that of docs/openpai-jobs.md
    return text.partition("  variables:\n")[0].rstrip()
