"""services-configuration.yaml: OpenPAI's sections, their shapes, HiveD's YAML inside text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site.load import read_site
from pai_install.site.problem import Problem
from pai_install.site.services import KNOWN_SECTIONS
from tests.unit.site.sites import write_site

GENERATED = """\
cluster:
  common:
    cluster-id: pai
    cluster-type: k8s
    k8s-rbac: "true"
    prometheus-pushgateway: false
  docker-registry:
    namespace: openpai
    domain: docker.io
    tag: v1.8.0
    secret-name: pai-secret
rest-server:
  default-pai-admin-username: admin
  default-pai-admin-password: admin-password
webportal:
  server-port: 9286
hivedscheduler:
  config: |
    physicalCluster:
      skuTypes:
        gpu-machine: {gpu: 1, cpu: 5, memory: 55244Mi}
      cellTypes:
        gpu-machine-NODE: {childCellType: gpu-machine, childCellNumber: 4, isNodeLevel: true}
      physicalCells:
      - cellType: gpu-machine-NODE
        cellAddress: w1
    virtualClusters:
      default:
        virtualCells:
        - cellType: gpu-machine-NODE
          cellNumber: 1
authentication:
  OIDC: false
  group-manager:
    group-data-source: basic
    admin-group:
      groupname: admingroup
      externalName: ""
      extension: {acls: {virtualClusters: [], admin: true}}
    default-group:
      groupname: default
      extension: {acls: {virtualClusters: ["default"], admin: false, storageConfigs: [data]}}
"""


def problems(directory: Path, services: str) -> list[Problem]:
    return list(read_site(write_site(directory, services=services)).problems)


def test_what_openpai_generated_has_no_problem(tmp_path: Path) -> None:
    reading = read_site(write_site(tmp_path, services=GENERATED))
    assert reading.problems == ()
    assert reading.site is not None
    assert reading.site.services["webportal"] == {"server-port": 9286}
    assert str(reading.site.services["hivedscheduler"]["config"]).startswith("physicalCluster:\n")


@pytest.mark.parametrize("section", sorted(KNOWN_SECTIONS))
def test_every_known_section_may_be_empty(tmp_path: Path, section: str) -> None:
    assert problems(tmp_path, f"{section}:\n") == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("cluster: {common: {cluster-type: yarn}}", "cluster.common.cluster-type"),
        ("prometheus: {scrape_interval: 0}", "prometheus.scrape_interval"),
        ("hivedscheduler: {webservice-port: 80}", "hivedscheduler.webservice-port"),
        ("docker-cache: {remote_url: docker.io}", "docker-cache.remote_url"),
        ("storage-manager: {security-type: NONE}", "storage-manager.security-type"),
        ("internal-storage: {quota-gb: 0}", "internal-storage.quota-gb"),
        ("device-plugin: {devices: nvidia.com/gpu}", "device-plugin.devices"),
        (
            "authentication: {group-manager: {group-data-source: ldap}}",
            "authentication.group-manager.group-data-source",
        ),
        (
            "authentication: {group-manager: {grouplist: [{groupname: a}, {groupname: a-b}]}}",
            "authentication.group-manager.grouplist[1].groupname",
        ),
        ("cluster: {docker-registry: {password: x}}", "cluster.docker-registry"),
        ("webportal: text", "webportal"),
        ("webportal: [1]", "webportal"),
    ],
)
def test_what_is_wrong_in_a_section(tmp_path: Path, text: str, path: str) -> None:
    [problem] = problems(tmp_path, text + "\n")
    assert (problem.path, problem.severity) == (path, "error")


def test_unknown_sections_are_warnings_with_the_nearest_name(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, "dockercache: {}\n")
    assert (problem.severity, problem.remedy) == ("warning", "did you mean docker-cache?")


def test_errors_inside_hiveds_text_are_at_the_files_own_line(tmp_path: Path) -> None:
    broken = GENERATED.replace("cellAddress: w1", "cellAddress: w1: x")
    [problem] = problems(tmp_path, broken)
    assert problem.line == broken.splitlines().index("        cellAddress: w1: x") + 1
    assert problem.path == "hivedscheduler.config"


def test_duplicates_inside_hiveds_text_are_found(tmp_path: Path) -> None:
    broken = GENERATED.replace("    virtualClusters:\n", "    virtualClusters:\n      default: {}\n")
    [problem] = problems(tmp_path, broken)
    assert problem.line == broken.splitlines().index("      default:") + 1
    assert problem.code == "site.duplicate-key"


@pytest.mark.parametrize("text", ["hivedscheduler: {config: ''}", "hivedscheduler: {config: }", "hivedscheduler: {}"])
def test_hived_may_be_without_configuration(tmp_path: Path, text: str) -> None:
    assert [problem.code for problem in problems(tmp_path, text + "\n")] in ([], ["site.empty"])
