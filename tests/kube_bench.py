"""kube-bench, which checks the CIS Kubernetes Benchmark, built from the Go module proxy into the user's cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import filelock
import pytest

from pai_install.components.store import default_cache

MODULE = "github.com/aquasecurity/kube-bench"
VERSION = "v0.14.1"
# of the module proxy. The checksum database does not know every version
SUM = "h1:Z/NcXfuwIQJ8jJQ5Qy2QXXVuBkJiIekl/oQ/rM56phA="
# its newest profile of Kubernetes itself
PROFILE = "cis-1.11"


def archive() -> Path:
    """A tar.gz with the program and its profiles. Skips without Go or a module proxy."""
    kept = default_cache() / "tests" / f"kube-bench-{VERSION}.tar.gz"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{kept}.lock"):
        if not kept.exists():
            _build(kept)
    return kept


def _build(target: Path) -> None:
    if not shutil.which("go"):
        pytest.skip("no Go on this box")
    scratch = target.with_suffix(".scratch")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    folders = {"GOMODCACHE": scratch / "mod", "GOCACHE": scratch / "cache", "GOPATH": scratch / "go"}
    environment = {
        **os.environ,
        "GONOSUMDB": MODULE,
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-modcacherw",
        "CGO_ENABLED": "0",
    }
    environment.update({name: str(folder) for name, folder in folders.items()})
    try:
        words = ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"]
        found = subprocess.run(words, env=environment, cwd=scratch, capture_output=True, text=True, check=False)
        if found.returncode:
            pytest.skip(f"the module proxy has no kube-bench: {found.stdout[-500:]}")
        module = json.loads(found.stdout)
        assert module["Sum"] == SUM
        source = Path(module["Dir"])
        build = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", str(scratch / "kube-bench"), "."]
        subprocess.run(build, env=environment, cwd=source, check=True, timeout=3000)
        with tarfile.open(scratch / "whole", "w:gz", compresslevel=3) as content:
            content.add(scratch / "kube-bench", "kube-bench")
            for name in ("config.yaml", PROFILE):
                content.add(source / "cfg" / name, f"cfg/{name}")
        (scratch / "whole").rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
