"""What is read but not done is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site import load_site
from pai_install.site.pending import pending

LAYOUT = """
machine-sku: {cpu: {mem: 8Gi, cpu: {vcore: 4}}}
machine-list:
  - {hostname: one, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true", pai-worker: "true"%s}
"""


def said(folder: Path, config: str = "", entry: str = "") -> tuple[str, ...]:
    """What is pending of a one-machine site with these additions."""
    (folder / "layout.yaml").write_text(LAYOUT % entry)
    (folder / "config.yaml").write_text(f"user: pai\npassword: x\n{config}")
    return pending(load_site(folder).site)


def test_plain_site_is_done_in_full(tmp_path: Path) -> None:
    assert said(tmp_path) == ()


@pytest.mark.parametrize(
    ("config", "entry", "words"),
    [
        ("enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n", "", "the Docker cache"),
        ("docker_registry_username: x\ndocker_registry_password: y\n", "", "docker_registry_username"),
        ("docker_iptables_enabled: false\n", "", "docker_iptables_enabled"),
        ("docker_image_tag: v1.8.0\n", "", "HiveD"),
    ],
)
def test_what_is_not_done_is_named(tmp_path: Path, config: str, entry: str, words: str) -> None:
    found = said(tmp_path, config, entry)
    assert len(found) == 1
    assert words in found[0]
