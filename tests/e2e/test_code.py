"""Code of a job: a large folder over a storage, and the folders of HDFS of an old job file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import lab_variant
from tests.unit.jobs.test_hdfs import SEED

from .conftest import KEPT, LOST, Cluster, until
from .test_jobs import job, shown
from .tool_site import IMAGE, tool_site

pytestmark = [pytest.mark.lab, pytest.mark.soak]

GROUP = "vision"
STORED = "/srv/pai-code"
SERVICES = f"""\
scheduler: {{type: kueue}}
jobs: {{hdfs: {{storage: data, path: /hdfs}}}}
virtual-clusters:
  - {{name: default, quota: [{{sku: lab-gpu, devices: 8}}], groups: [{GROUP}]}}
storages:
  - {{name: data, type: local, path: {STORED}, machine: {LOST}}}
authentication:
  group-manager:
    grouplist: [{{groupname: {GROUP}, extension: {{acls: {{storageConfigs: [data]}}}}}}]
"""
# random bytes do not become smaller: the archive is far above the size of a ConfigMap
SIZE, PARTS = 5 * 1024 * 1024, 4
JOB = """\
protocolVersion: 2
name: {name}
type: job
prerequisites: [{{type: dockerimage, name: tools, uri: {image}}}]
taskRoles:
  main:
    instances: 1
    dockerImage: tools
    resourcePerInstance: {{cpu: 1, memoryMB: 128, gpu: 0}}
    commands: ["{command}"]
extras:
  storages: [{{name: data, mountPath: /mnt/data}}]
"""
# the program of the article trains on MNIST: this one says where it is, and what it was given
PROGRAM = """\
import os
work, here = os.environ["PAI_WORK_DIR"], os.path.abspath(__file__)
print("program", here == f"{work}/mnist/mnist.py", open(os.path.join(os.path.dirname(here), "data.txt")).read())
if "PAI_OUTPUT_DIR" in os.environ:
    source = os.environ["PAI_DATA_DIR"]
    with open(os.environ["PAI_OUTPUT_DIR"] + "/model.txt", "w") as file:
        file.write("model of " + open(source + "/numbers.txt").read())
"""


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Kueue, a storage of the group that stands for HDFS, and an image with tools."""
    # a kept machine has archives of earlier runs
    cluster.on(LOST, f"mkdir -p -m 0777 {STORED} && find {STORED} -mindepth 1 -delete")
    with tool_site(cluster, SERVICES):
        try:
            yield cluster
        finally:
            for name in ("large", "mnist_024", "mnist_025"):
                job(cluster, "stop", name, "--yes")
    if not KEPT:
        cluster.on(LOST, f"rm -rf {STORED}")


def folder_of(place: Path) -> dict[str, str]:
    """Code that is larger than a ConfigMap, with a file that is ignored; path -> its SHA-256."""
    (place / "data").mkdir(parents=True)
    found = {}
    for number in range(PARTS):
        content = os.urandom(SIZE // PARTS)
        (place / f"data/part-{number}").write_bytes(content)
        found[f"data/part-{number}"] = hashlib.sha256(content).hexdigest()
    (place / "train.py").write_text("print('trains')\n")
    (place / "secret.env").write_text("nobody's\n")
    (place / ".gitignore").write_text("*.env\n")
    return found


def test_a_large_folder_goes_over_the_storage(site: Cluster, tmp_path: Path) -> None:
    sums = folder_of(tmp_path / "code")
    path = tmp_path / "large.yaml"
    command = "sha256sum data/* && ls -a && python train.py && sha256sum data/* > /mnt/data/sums"
    path.write_text(JOB.format(name="large", image=IMAGE, command=command))
    words = ("--group", GROUP, "--user", "alice", "--code", str(tmp_path / "code"))
    done = job(site, "submit", str(path), *words, "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    log = job(site, "logs", "large").stdout
    assert [f"{digest}  {name}" for name, digest in sums.items() if f"{digest}  {name}" not in log] == []
    assert ("trains" in log, "secret.env" in log) == (True, False)
    output = site.on(LOST, f"cat {STORED}/sums")
    assert output == "".join(f"{digest}  {name}\n" for name, digest in sums.items()), "output is back"
    kept_once(site, path, words)


def kept_once(site: Cluster, path: Path, words: tuple[str, ...]) -> None:
    """The archive is on the storage, private to it by its content: the same code is not sent again."""
    archives = f"find {STORED} -name '*.tar.gz'"
    (archive,) = site.on(LOST, archives).split()
    assert site.on(LOST, f"sha256sum {archive}").split()[0] == Path(archive).name.removesuffix(".tar.gz")
    assert job(site, "stop", "large", "--yes").returncode == 0
    again = job(site, "submit", str(path), *words, "--watch")
    assert (again.returncode, "already" in again.stderr) == (0, True), again.stderr
    assert site.on(LOST, archives).split() == [archive]


def test_the_job_file_of_the_article_runs_as_it_is_written(site: Cluster, tmp_path: Path) -> None:
    """OpenPAI before 1.0: codeDir on HDFS. Image and sizes are the lab's."""
    put(site, "folder/mnist/mnist.py", PROGRAM)
    put(site, "folder/mnist/data.txt", "images")
    path = tmp_path / "mnist.json"
    path.write_text(lab_variant(SEED, IMAGE))
    done = job(site, "submit", str(path), "--group", GROUP, "--user", "alice", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "program True images" in job(site, "logs", "mnist_024").stdout
    assert site.on(LOST, f"ls {STORED}/hdfs/folder/mnist").split() == ["data.txt", "mnist.py"], (
        "the original is as it was"
    )


def test_data_and_output_of_an_old_file_are_folders_of_the_storage(site: Cluster, tmp_path: Path) -> None:
    put(site, "folder/mnist/mnist.py", PROGRAM)
    put(site, "folder/mnist/data.txt", "images")
    put(site, "numbers/numbers.txt", "seven")
    path = tmp_path / "mnist.json"
    folders = '"dataDir": "hdfs://10.0.0.1:9000/numbers", "outputDir": "$PAI_DEFAULT_FS_URI/models/new",'
    text = lab_variant(SEED, IMAGE).replace("mnist_024", "mnist_025")
    path.write_text(text.replace('"codeDir"', f'{folders} "codeDir"'))
    done = job(site, "submit", str(path), "--group", GROUP, "--user", "alice", "--watch")
    assert done.returncode == 0, done.stdout + done.stderr
    assert site.on(LOST, f"cat {STORED}/hdfs/models/new/model.txt") == "model of seven"
    assert until(lambda: shown(site, "mnist_025")["state"] == "SUCCEEDED", 30)


def put(site: Cluster, name: str, content: str) -> None:
    """A file of HDFS, as `hdfs dfs -copyToLocal` leaves it on the storage."""
    place = f"{STORED}/hdfs/{name}"
    site.on(LOST, f"mkdir -p $(dirname {place}) && cat >{place} <<'END'\n{content}\nEND")
    if name.endswith(".txt"):
        site.on(LOST, f"truncate -s -1 {place}")
