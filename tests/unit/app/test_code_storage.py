"""Code above 1 MiB: the shell of its pod, the shell of its job, and its storage."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pai_install.app.code_folder import packed_folder
from pai_install.app.code_storage import storage_for_code
from pai_install.jobs.code import FOLDER, StoredCode, stored_code
from pai_install.jobs.code_pod import ABSENT, NOT_EQUAL, PRESENT, receive_words, upload_pod
from pai_install.jobs.place import Claim, JobOwner, JobPlace
from pai_install.profile.model import ClusterProfile, ProfileCode, ProfileGrant, ProfileStorage
from tests.errors import raises
from tests.ports import free_port
from tests.unit.jobs.examples import somewhere
from tests.unit.storage.test_copying import BUSYBOX

NOISE = os.urandom(1_200_000)
OWNER = JobOwner("alice", "nlp", "nlp")


@dataclass
class Storage:
    """A folder that stands for the storage, and the programs of the pod in a shell of this host."""

    folder: Path
    programs: Path
    code: StoredCode
    content: bytes

    @property
    def file(self) -> Path:
        return self.folder / f"{self.code.digest}.tar.gz"

    @property
    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def pod(self, used: Sequence[str] = (), keep_days: int = 30, port: int = 0) -> Mapping[str, Any]:
        place = JobPlace(somewhere().scheduling, somewhere().cluster, "prod", OWNER, {"data": Claim("data")})
        return upload_pod(self.code, place, "77", "image", keep_days, used, port)

    def shell(self, script: str, pod: Mapping[str, Any]) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        words = {row["name"]: row["value"].replace(FOLDER, str(self.folder)) for row in container["env"]}
        words |= {"PATH": f"{self.programs}:{os.environ['PATH']}"}
        pipe = subprocess.PIPE
        return subprocess.Popen(["/bin/sh", "-c", script], env=words, stdin=pipe, stdout=pipe, stderr=pipe)

    def check(self, **more: Any) -> subprocess.Popen[bytes]:
        pod = self.pod(**more)
        return self.shell(pod["spec"]["containers"][0]["command"][2], pod)

    def says(self, **more: Any) -> str:
        """The answer of the pod. It is then deleted."""
        with self.check(**more) as child:
            assert child.stdout is not None
            line = child.stdout.readline().decode().strip()
            child.send_signal(signal.SIGTERM)
        return line

    def receive(self, content: bytes) -> int:
        pod = self.pod()
        with self.shell(receive_words(pod)[-1], pod) as child:
            child.communicate(content)
        return child.returncode

    def start(self, work: Path) -> subprocess.CompletedProcess[str]:
        """A job that lists its work folder."""
        script = self.code.unpack.replace(FOLDER, str(self.folder)) + "ls -A"
        words = {"PATH": os.environ["PATH"], "PAI_WORK_DIR": str(work)}
        return subprocess.run(["/bin/sh", "-c", script], env=words, capture_output=True, text=True, check=False)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    programs, folder, root = tmp_path / "bin", tmp_path / "storage", tmp_path / "code"
    for path in (programs, folder, root):
        path.mkdir()
    if shutil.which("busybox") is None:
        (programs / "busybox").write_text(BUSYBOX)
        (programs / "busybox").chmod(0o755)
    (root / "noise").write_bytes(NOISE)
    (root / "train.py").write_text("print()")
    with packed_folder(root, 16) as packed:
        assert packed.small is None
        packed.file.seek(0)
        return Storage(folder, programs, packed.on("data"), packed.file.read())


def test_an_archive_arrives_whole_and_once(storage: Storage, tmp_path: Path) -> None:
    assert storage.says() == ABSENT
    assert storage.receive(storage.content) == 0
    assert storage.file.read_bytes() == storage.content
    assert storage.names == [storage.file.name]
    assert storage.says() == PRESENT
    done = storage.start(tmp_path / "work")
    assert (done.returncode, done.stdout.split()) == (0, ["noise", "train.py"])
    assert (tmp_path / "work" / "noise").read_bytes() == NOISE


# stands in for the program of busybox: it reads one connection
NC = """\
#!/usr/bin/env python3
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[-1]))) as server, server.accept()[0] as sender:
    while piece := sender.recv(65536):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize(("kept", "status"), [(None, 0), (-1, NOT_EQUAL), (0, NOT_EQUAL)])
def test_an_archive_arrives_at_a_port(storage: Storage, kept: int | None, status: int) -> None:
    (storage.programs / "nc").write_text(NC)
    (storage.programs / "nc").chmod(0o755)
    port = free_port()
    with storage.check(port=port) as pod:
        assert pod.stdout is not None
        assert pod.stdout.readline().decode().strip() == ABSENT
        with connected(port) as connection:
            connection.sendall(storage.content[:kept])
        assert pod.wait(timeout=30) == status
    assert storage.names == ([] if status else [storage.file.name])


def connected(port: int) -> socket.socket:
    end = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=5)
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.parametrize("part", [b"", b"other", NOISE])
def test_another_content_leaves_nothing(storage: Storage, part: bytes) -> None:
    assert storage.receive(part) == NOT_EQUAL
    assert storage.receive(storage.content[:-1]) == NOT_EQUAL
    assert storage.names == []


def test_more_than_was_announced_is_not_written(storage: Storage) -> None:
    storage.receive(storage.content + NOISE)
    assert sum(path.stat().st_size for path in storage.folder.iterdir()) <= storage.code.size


def test_the_end_of_the_pod_removes_the_part(storage: Storage) -> None:
    with storage.check() as pod:
        assert pod.stdout is not None
        assert pod.stdout.readline().decode().strip() == ABSENT
        (storage.folder / ".part-77").write_bytes(b"half")
        pod.send_signal(signal.SIGTERM)
    assert storage.names == []


@pytest.mark.parametrize("forgery", ["content", "link", "folder", "pipe", "nothing", "longer"])
def test_a_forged_archive_starts_no_job_and_is_replaced(storage: Storage, forgery: str, tmp_path: Path) -> None:
    match forgery:
        case "content":
            storage.file.write_bytes(b"x" * storage.code.size)
        case "longer":
            storage.file.write_bytes(b"x" * (storage.code.size + 1_000_000))
        case "link":
            (tmp_path / "other").write_bytes(storage.content)
            storage.file.symlink_to(tmp_path / "other")
        case "folder":
            storage.file.mkdir()
        case "pipe":
            os.mkfifo(storage.file)
    done = storage.start(tmp_path / "work")
    assert done.returncode == 1
    assert "submit the job again with --code" in done.stderr
    assert list((tmp_path / "work").iterdir()) == []
    assert storage.says() == ABSENT
    assert storage.receive(storage.content) == 0
    assert storage.file.read_bytes() == storage.content
    assert not storage.file.is_symlink()
    assert storage.start(tmp_path / "again").returncode == 0


def test_a_tar_that_grows_ends(storage: Storage, tmp_path: Path) -> None:
    storage.receive(storage.content)
    storage.code = StoredCode(storage.code.digest, "data", storage.code.size, 4096)
    assert storage.start(tmp_path / "work").returncode == 1


def test_old_archives_go_but_those_of_jobs(storage: Storage) -> None:
    names = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("old", "used", "new")}
    for name, digest in names.items():
        path = storage.folder / f"{digest}.tar.gz"
        path.write_text(name)
        age = time.time() - (40 if name != "new" else 20) * 86400
        os.utime(path, (age, age))
    strange = storage.folder / "a b; rm -rf $HOME.tar.gz"
    for path in (strange, storage.folder / ".part-lost"):
        path.write_text("x")
        os.utime(path, (1, 1))
    many = [hashlib.sha256(bytes([number % 256, number // 256])).hexdigest() for number in range(900)]
    assert storage.says(used=many) == ABSENT
    assert len(storage.names) == 4
    assert storage.says(used=[names["used"]]) == ABSENT
    assert storage.names == sorted(f"{names[name]}.tar.gz" for name in ("used", "new"))


def test_an_image_without_sha256sum_says_so(storage: Storage, tmp_path: Path) -> None:
    storage.receive(storage.content)
    words = {"PATH": str(tmp_path), "PAI_WORK_DIR": str(tmp_path)}
    script = storage.code.unpack.replace(FOLDER, str(storage.folder)) + "echo started"
    done = subprocess.run(["/bin/sh", "-c", script], env=words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "started" not in done.stdout


def test_an_image_needs_the_programs_that_its_error_names(storage: Storage, tmp_path: Path) -> None:
    storage.receive(storage.content)
    tools = tmp_path / "tools"
    tools.mkdir()
    # what every image with a shell has, and those that the error names
    for name in ("mkdir", "head", "rm", "ls", "tar", "gzip", "sha256sum"):
        (tools / name).symlink_to(str(shutil.which(name)))
    words = {"PATH": str(tools), "PAI_WORK_DIR": str(tmp_path / "work")}
    script = storage.code.unpack.replace(FOLDER, str(storage.folder)) + "ls -A"
    done = subprocess.run(["/bin/sh", "-c", script], env=words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["noise", "train.py"]), done.stderr


@pytest.mark.parametrize(
    "note", ["", "{", "[]", "{}", '{"storage": 1, "size": 1, "unpacked": 1}', '{"storage": "data", "size": "1"}']
)
def test_a_forged_annotation_is_no_code(note: str) -> None:
    assert stored_code(f"sha256:{'0' * 64}", note) is None


def test_an_annotation_is_read_back() -> None:
    code = StoredCode("a" * 64, "data", 5, 6)
    assert stored_code(f"sha256:{code.digest}", code.note) == code
    assert stored_code("sha256:../../etc", code.note) is None


def storages(*types: str, setting: str = "", groups: str = "nlp") -> ClusterProfile:
    names = [f"s{number}" for number, _ in enumerate(types)]
    return ClusterProfile(
        storages=tuple(
            ProfileStorage(name=name, type=it.removesuffix("-ro"), read_only=it.endswith("-ro"))
            for name, it in zip(names, types, strict=True)
        ),
        grants=tuple(ProfileGrant(storage=name, group=groups, claim=name, shared=True) for name in names),
        code=ProfileCode(storage=setting),
    )


def test_the_storage_for_code() -> None:
    assert storage_for_code(storages("nfs", "hostPath", "nfs-ro"), "nlp") == "s0"
    assert storage_for_code(storages("nfs", "nfs", setting="s1"), "nlp") == "s1"
    assert storage_for_code(storages("hostPath", setting="s0"), "nlp") == "s0"
    for profile in (storages(), storages("nfs", "nfs"), storages("nfs-ro"), storages("nfs", setting="s0", groups="a")):
        with raises("code-storage-missing"):
            storage_for_code(profile, "nlp")
