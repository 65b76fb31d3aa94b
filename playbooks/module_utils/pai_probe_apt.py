"""The state of the package sources for an installation, as apt reports it. Read-only."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile

from ansible.module_utils.pai_machine import PROGRAM_MISSING, TOOK_TOO_LONG, command
from ansible.module_utils.pai_probe import without_login

LISTS = "/var/lib/apt/lists"
TIMEOUT_S = 18.0
# Release files alone, with their signatures: no index, no cache, none of the commands that follow an update.
CONFIGURATION = """#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear Acquire::IndexTargets;
Dir::State::Lists "{folder}/lists";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Acquire::Retries "0";
Acquire::http::Timeout "5";
Acquire::https::Timeout "5";
"""


def refused_sources(further: str = "", lists: str = LISTS) -> list[str]:
    """Returns errors of apt about its sources that end an update: no release file, no signature, conflicting keys.

    An unreachable server is only a warning: apt continues with the old lists. further: configuration lines. Raises
    OSError if apt fails.
    """
    folder = tempfile.mkdtemp(prefix="pai-apt-")
    try:
        os.chmod(folder, 0o755)  # apt fetches as a user of its own  # noqa: S103 - release files are public
        os.makedirs(f"{folder}/lists/partial")
        # With the old Release files, apt asks the servers for changes only.
        for path in glob.glob(f"{lists}/*Release*"):
            shutil.copy(path, f"{folder}/lists")
        with open(f"{folder}/apt.conf", "w", encoding="utf-8") as handle:
            handle.write(CONFIGURATION.format(folder=folder) + further)
        argv = ["apt-get", "--quiet", f"--config-file={folder}/apt.conf", "update"]
        # apt writes its errors to standard error.
        status, output = command(argv, TIMEOUT_S, errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if status in (PROGRAM_MISSING, TOOK_TOO_LONG):
        raise OSError("apt-get cannot be run" if status == PROGRAM_MISSING else f"apt took longer than {TIMEOUT_S:g} s")
    found = [without_login(line[3:].strip()) for line in output.splitlines() if line.startswith("E: ")]
    return found or ([] if status == 0 else [f"apt-get update ends with {status}"])
