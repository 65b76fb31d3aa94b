"""The site of layouts/quickstart with all that its tests need: groups, storages, volumes, and an account of a registry.

`python -m tests.e2e.job_site FOLDER SUBNET` writes it for a lab that is kept: docs/testing.md.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUBNET = "172.30.74"
MASTER, ONE, OTHER = "master", "worker-1", "worker-2"
# the administrator of OpenPAI's keys
USER, PASSWORD = "boss", "the password of boss"
# of a registry that test_groups runs, and bcrypt of its password
REGISTRY_PORT, REGISTRY_PASSWORD = 5993, "Group-pull-9"
REGISTRY_ACCOUNT = "robot:$2b$05$abcdefghijklmnopqrstuuqV0cX24j/h/1tbuk1jtXbE4Z06OEY9."
# of jobs; another name of the same namespace is no group's
JOBS_GROUP = "gangs"
# the code of administrators' jobs
CODE, ADMINISTRATORS = "/srv/pai-code", "{acls: {admin: true}}"
DYNAMIC = "dynamic-volumes: {type: local-path, path: /srv/pai-volumes}"
CLUSTERS = "groups: [team]"
# tests run pods of no queue, as sites without the limit do
UNQUEUED = "\njobs:\n  unqueued: {cores: 1, memory: 2Gi}\n"
GROUPS = f"""\
      - groupname: {JOBS_GROUP}
      - groupname: Vision
        extension: {{acls: {{storageConfigs: [scratch, disk]}}}}
      - groupname: speech
        extension: {{acls: {{storageConfigs: [scratch, shelf]}}}}
      - groupname: third
"""
STORAGES = f"""\
  - {{name: scratch, type: hostPath, path: /srv/pai-scratch}}
  - {{name: shelf, type: hostPath, path: /srv/pai-of-speech}}
  - {{name: disk, type: local, path: /srv/pai-disk, machine: {ONE}}}
  - {{name: code, type: local, path: {CODE}, machine: {ONE}}}
{DYNAMIC}
registry:
  logins:
    - {{registry: "REGISTRY", username: robot, password: {REGISTRY_PASSWORD}, groups: [Vision]}}
rest-server: {{default-pai-admin-username: {USER}, default-pai-admin-password: {PASSWORD}}}
"""


def write_site(folder: Path, subnet: str) -> Path:
    """Writes the site; its machines have other addresses than the layout's."""
    shutil.copytree(ROOT / "layouts" / "quickstart", folder, ignore=shutil.ignore_patterns(".pai"))
    registry = registry_of(subnet)
    layout, config, services = (folder / name for name in ("layout.yaml", "config.yaml", "services-configuration.yaml"))
    layout.write_text(layout.read_text().replace("172.30.75.", f"{subnet}."))
    config.write_text(f"{config.read_text()}\nopenpai_docker_insecure_registries: ['{registry}']\n")
    text = services.read_text()
    head, found, storages = text.partition("\n# A folder of each node")
    assert found, "the layout's storages are at the end of its file"
    assert CLUSTERS in head
    assert ADMINISTRATORS in head
    assert UNQUEUED in head
    head = head.replace(CLUSTERS, f"groups: [team, {JOBS_GROUP}]").replace(UNQUEUED, "")
    head = head.replace(ADMINISTRATORS, "{acls: {admin: true, storageConfigs: [code]}}")
    services.write_text(f"{head}{GROUPS}{found}{storages}{STORAGES.replace('REGISTRY', registry)}")
    return folder


def registry_of(subnet: str) -> str:
    """The address of the registry on the controller host."""
    return f"{subnet}.1:{REGISTRY_PORT}"


if __name__ == "__main__":
    write_site(Path(sys.argv[1]), sys.argv[2])
