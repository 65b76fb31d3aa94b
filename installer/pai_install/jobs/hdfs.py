"""Folders of HDFS in old job files -> folders of a storage of the site. Pure.

OpenPAI before 1.0 copied codeDir into the work folder of each container. Programs read and wrote dataDir and outputDir.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

from pai_install.documents.scalars import invalid, read_text, shown
from pai_install.jobs.model import Job, JobMount

CODE, DATA, OUTPUT = "codeDir", "dataDir", "outputDir"
_VARIABLES = {CODE: "PAI_CODE_DIR", DATA: "PAI_DATA_DIR", OUTPUT: "PAI_OUTPUT_DIR"}
# where containers have the storage
MOUNT = "/mnt/hdfs"
_ADDRESS = re.compile(r"(?:(?:web)?hdfs://[^/]*|\$(?:PAI_DEFAULT_FS_URI|\{PAI_DEFAULT_FS_URI\}))(/.*)?", re.DOTALL)
_LONGEST = 1000
_CODE = """\
mkdir -p "$PAI_WORK_DIR" && cd "$PAI_WORK_DIR" && cp -R {folder} . || {{
echo "cannot copy {key} from" {folder} >&2
exit 1
}}
"""
_DATA = """\
[ -d {folder} ] || {{
echo "cannot find {key} at" {folder} >&2
exit 1
}}
"""
_OUTPUT = """\
mkdir -p {folder} || {{
echo "cannot create {key} at" {folder} >&2
exit 1
}}
"""
_BEFORE = {CODE: _CODE, DATA: _DATA, OUTPUT: _OUTPUT}


def is_hdfs(address: object) -> bool:
    """Whether a value of a file is an address of HDFS."""
    return isinstance(address, str) and _ADDRESS.fullmatch(address) is not None


def read_hdfs_folder(value: object) -> str:
    """The folder in an address of HDFS. Raises ValueError for another value, and for a place outside of it."""
    word = read_text(value)
    found = _ADDRESS.fullmatch(word)
    if found is None:
        raise invalid("hdfs", f"{shown(word)} is no address of HDFS", "write hdfs://HOST:PORT/FOLDER")
    folder = f"/{posixpath.normpath(found[1] or '/').lstrip('/')}"
    if not folder.isprintable() or ".." in (found[1] or "").split("/") or len(folder) > _LONGEST:
        raise invalid("hdfs", f"{shown(word)} names no folder", "write a folder without '..'")
    return folder


def folder_on(root: str, folder: str) -> str:
    """A folder of HDFS on the storage. root: the folder of the storage that stands for HDFS."""
    return posixpath.normpath(f"/{root.strip('/')}/{folder.strip('/')}").replace("//", "/")


def with_hdfs(job: Job, storage: str, root: str) -> Job:
    """The job with its folders of HDFS on a storage of the site."""
    before, variables = "", {}
    for key, folder in job.hdfs.items():
        place = f"{MOUNT}{folder_on(root, folder)}".rstrip("/")
        # The folder comes from the file of a user and goes into a shell script.
        before += _BEFORE[key].format(key=key, folder=shlex.quote(place))
        variables[_VARIABLES[key]] = place
    roles = tuple(
        replace(role, preparation=before, environment={**role.environment, **variables}) for role in job.roles
    )
    mount = JobMount(storage, MOUNT)
    return replace(job, roles=roles, mounts=tuple(dict.fromkeys([*job.mounts, mount])), hdfs={})


def placeholders(hdfs: Mapping[str, str]) -> dict[str, str]:
    """Variable -> folder of HDFS. The place of the folder is not known yet."""
    return {_VARIABLES[key]: folder for key, folder in hdfs.items() if key != CODE}
