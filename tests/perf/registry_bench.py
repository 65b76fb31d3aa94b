"""What the registry cache costs and brings: three machines that pull one large image, straight and through it.

The upstream is a second registry on this host: the network between is as fast as memory, so "straight" is the best
that an upstream can be. What is compared is the way, not the internet.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pai_install.run.environment import cached_program
from pai_install.site import load_site
from tests.e2e.conftest import on_machine
from tests.e2e.distribution import DistributionClient
from tests.e2e.upstream import Upstream
from tests.perf.budgets import Measure
from tests.perf.process import cost_of, pai_install

MIB = 2**20
IMAGE_MIB = 1024
REPOSITORY = "bench/large"
NODE_PORT = 30500
FOLDER = "/var/lib/pai-cache"
SETTINGS = f"""
enable_docker_cache: true
docker_cache_storage_backend: filesystem
docker_cache_fs_mount_path: {FOLDER}
docker_cache_remote_url: %s
"""
PULL = "ctr -n bench images pull"
THROUGH = f"{PULL} --hosts-dir /etc/containerd/certs.d docker.io/{REPOSITORY}:1"


def large_image(folder: Path, mib: int = IMAGE_MIB) -> Path:
    """An OCI layout of one image whose one layer nothing compresses; the folder."""
    (folder / "blobs" / "sha256").mkdir(parents=True)
    layer = _layer(folder, mib)
    config = _keep(
        folder, {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}
    )
    config["mediaType"] = "application/vnd.oci.image.config.v1+json"
    kind = "application/vnd.oci.image.manifest.v1+json"
    manifest = _keep(folder, {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer]})
    index = {"schemaVersion": 2, "manifests": [{**manifest, "mediaType": kind}]}
    (folder / "index.json").write_text(json.dumps(index))
    return folder


def _layer(folder: Path, mib: int) -> dict[str, Any]:
    path = folder / "layer.tar"
    with tarfile.open(path, "w") as archive:
        for number in range(mib // 64 or 1):
            entry = tarfile.TarInfo(f"data/{number}")
            entry.size = min(mib, 64) * MIB
            archive.addfile(entry, io.BytesIO(os.urandom(entry.size)))
    with path.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    size = path.stat().st_size
    path.rename(folder / "blobs" / "sha256" / digest)
    return {"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": f"sha256:{digest}", "size": size}


def _keep(folder: Path, document: Mapping[str, Any]) -> dict[str, Any]:
    raw = json.dumps(document).encode()
    digest = hashlib.sha256(raw).hexdigest()
    (folder / "blobs" / "sha256" / digest).write_bytes(raw)
    return {"digest": f"sha256:{digest}", "size": len(raw)}


def registry_measures(site: Path) -> list[Measure]:
    """Measures on a cluster that runs; leaves it with a cache. Raises CalledProcessError when a step fails."""
    with _upstream(site) as upstream:
        config = site / "config.yaml"
        config.write_text(config.read_text() + SETTINGS % upstream.url)
        cost_of(pai_install("apply", "--site", str(site), "--yes", "--format", "json"))
        names = [machine.hostname for machine in load_site(site).site.machines]
        straight = f"{PULL} --plain-http {upstream.address}:{upstream.port}/{REPOSITORY}:1"
        # in this order: the first pull through the cache is the one that fills it
        pulls = {"upstream": straight, "cold_cache": THROUGH, "cache": THROUGH}
        note = f"{len(names)} machines at the same time, {IMAGE_MIB} MiB each"
        found = [
            Measure(f"registry_pull_{name}_wall", _pull_everywhere(site, names, command), note)
            for name, command in pulls.items()
        ]
        return [*found, *_throughput(site)]


@contextmanager
def _upstream(site: Path) -> Iterator[Upstream]:
    loaded = load_site(site).site
    program = cached_program(loaded, "registry")
    if program is None:
        raise OSError("the registry's program is not in the cache of components")
    subnet = loaded.control_planes[0].hostip.rpartition(".")[0]
    with tempfile.TemporaryDirectory(prefix="pai-bench-image-") as folder:
        layout = large_image(Path(folder) / "layout")
        upstream = Upstream(program, Path(folder) / "upstream", f"{subnet}.1", 5990)
        upstream.start()
        try:
            upstream.push(layout, REPOSITORY, "1")
            yield upstream
        finally:
            upstream.stop()


def _pull_everywhere(site: Path, names: list[str], command: str) -> float:
    """Seconds until every machine has it; none has it afterwards."""
    image = command.rsplit(maxsplit=1)[-1]
    with ThreadPoolExecutor(len(names)) as pool:
        seconds = _timed(lambda: list(pool.map(lambda name: on_machine(site, name, command), names)))
    for name in names:
        on_machine(site, name, f"ctr -n bench images rm --sync {image}")
    return seconds


def _throughput(site: Path) -> list[Measure]:
    """MiB/s of the layer: one client over TLS, and its file read past the page cache."""
    identity = json.loads((site / ".pai" / "registry.json").read_text())
    leader = load_site(site).site.control_planes[0]
    client = DistributionClient(leader.hostip, NODE_PORT, identity["authorities"][-1]["certificate"])
    layer = client.ask(f"{REPOSITORY}/manifests/1").json["layers"][0]
    served = _timed(lambda: client.ask(f"{REPOSITORY}/blobs/{layer['digest']}"))
    data = f"$(find {FOLDER} -path '*{layer['digest'].removeprefix('sha256:')}/data')"
    read = _timed(
        lambda: on_machine(site, leader.hostname, f"dd if={data} of=/dev/null bs=4M iflag=direct 2>/dev/null")
    )
    size = layer["size"] / MIB
    note = "one client, one layer"
    return [
        Measure("registry_cache_throughput", size / served, note),
        Measure("registry_disk_throughput", size / read, "the same layer's file, read directly"),
    ]


def _timed(action: Callable[[], object]) -> float:
    start = time.monotonic()
    action()
    return time.monotonic() - start
