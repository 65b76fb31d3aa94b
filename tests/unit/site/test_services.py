"""services-configuration.yaml: OpenPAI's sections, their shapes, HiveD's YAML inside text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.documents.problem import Problem
from pai_install.site.field_metadata import NotYet, WithoutEffect, keys_of, marker_of
from pai_install.site.load import load_site, read_site
from pai_install.site.rules.pending import pending
from pai_install.site.services import Services
from tests.unit.site.sites import write_site

EFFECTIVE = {
    *("docker_cache", "registry", "storages", "storage_manager", "dynamic_volumes"),
    *("scheduler", "virtual_clusters", "hivedscheduler", "jobs", "authentication", "monitoring", "logs"),
    *("prometheus", "alert_manager", "node_exporter"),
    *("console", "rest_server", "webportal", "pylon"),
}
OPENPAI = Path(__file__).parents[2] / "golden" / "site" / "openpai"

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

MISSING_ADDRESS = "cellAddress is missing: HiveD would look for a machine called 0"
GROUPS = "admin-group: {groupname: admins}, default-group: {groupname: default}"


def problems(directory: Path, services: str) -> list[Problem]:
    return list(read_site(write_site(directory, services=services)).problems)


def public_secrets(problems: Sequence[Problem]) -> list[str]:
    """The paths of warnings of public passwords, which are all problems."""
    assert {(problem.code, problem.severity) for problem in problems} <= {("site.public-secret", "warning")}
    return [problem.path for problem in problems]


def test_what_openpai_generated_has_no_problem(tmp_path: Path) -> None:
    reading = read_site(write_site(tmp_path, services=GENERATED))
    assert public_secrets(reading.problems) == ["rest-server.default-pai-admin-password"]
    assert reading.site is not None
    services = reading.site.services
    assert services.webportal is not None
    assert services.webportal.server_port == 9286
    assert services.hivedscheduler is not None
    assert services.hivedscheduler.config is not None
    [cell] = services.hivedscheduler.config.physical_cluster.physical_cells
    assert (cell.cell_type, cell.cell_address) == ("gpu-machine-NODE", "w1")


@pytest.mark.parametrize("section", sorted(keys_of(Services)))
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
            f"authentication: {{group-manager: {{{GROUPS}, group-data-source: ldap}}}}",
            "authentication.group-manager.group-data-source",
        ),
        (
            f"authentication: {{group-manager: {{{GROUPS}, grouplist: [{{groupname: a}}, {{groupname: a-b}}]}}}}",
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


@pytest.mark.parametrize("missing", ["admin-group", "default-group"])
@pytest.mark.parametrize("value", ["", "MISSING: ~, ", 'MISSING: "", '])
def test_a_group_that_openpai_always_makes_is_missing(tmp_path: Path, missing: str, value: str) -> None:
    [other] = [group for group in GROUPS.split(", ") if not group.startswith(missing)]
    given = value.replace("MISSING", missing) + other
    [problem] = problems(tmp_path, f"authentication:\n  group-manager: {{{given}}}\n")
    assert (problem.severity, problem.code, problem.line) == ("warning", "site.missing", 2)
    assert missing in problem.message


def test_groups_may_be_left_to_openpai(tmp_path: Path) -> None:
    assert problems(tmp_path, "authentication: {OIDC: false}\n") == []


def test_unknown_sections_are_warnings_with_the_nearest_name(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    [problem] = problems(tmp_path, "dockercache: {}\n")
    assert (problem.severity, problem.remedy) == snapshot


def test_errors_inside_hiveds_text_are_at_the_files_own_line(tmp_path: Path) -> None:
    broken = GENERATED.replace("cellAddress: w1", "cellAddress: w1: x")
    [problem] = problems(tmp_path, broken)
    assert problem.line == broken.splitlines().index("        cellAddress: w1: x") + 1
    assert problem.path == "hivedscheduler.config"


def test_duplicates_inside_hiveds_text_are_found(tmp_path: Path) -> None:
    broken = GENERATED.replace("    virtualClusters:\n", "    virtualClusters:\n      default: {}\n")
    [_, problem] = problems(tmp_path, broken)
    assert problem.line == broken.splitlines().index("      default:") + 1
    assert problem.code == "site.duplicate-key"


@pytest.mark.parametrize("text", ["hivedscheduler: {config: ''}", "hivedscheduler: {config: }", "hivedscheduler: {}"])
def test_hived_may_be_without_configuration(tmp_path: Path, text: str) -> None:
    assert [problem.code for problem in problems(tmp_path, text + "\n")] in ([], ["site.empty"])


@pytest.mark.parametrize("text", ["config: ''", "config: |\n    # off\n", "config:", "config: ' '"])
def test_hived_without_configuration_is_off(tmp_path: Path, text: str) -> None:
    reading = read_site(write_site(tmp_path, services=f"hivedscheduler:\n  {text}\n"))
    assert reading.problems == ()
    assert reading.site is not None
    assert reading.site.services.hivedscheduler is None or reading.site.services.hivedscheduler.config is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("childCellNumber: 4", "childCellNumber: four"),
        ("cellAddress: w1", "cellAdress: w1"),
        ("isNodeLevel: true", "isNodeLevel: maybe"),
        ("        - cellType: gpu-machine-NODE\n          cellNumber: 1\n", "          gpu\n"),
        ("skuTypes:\n        gpu-machine: {gpu: 1, cpu: 5, memory: 55244Mi}", "skuTypes: [x]"),
    ],
)
def test_what_is_wrong_inside_hiveds_text_is_at_the_inner_key(tmp_path: Path, old: str, new: str) -> None:
    assert old in GENERATED
    text = GENERATED.replace(old, new)
    [problem] = [
        found
        for found in problems(tmp_path, text)
        if found.message != MISSING_ADDRESS and found.code != "site.public-secret"
    ]
    line = text.splitlines()[problem.line - 1]
    assert problem.path.startswith("hivedscheduler.config.")
    key = problem.path.rpartition(".")[2].partition("[")[0]
    assert line[problem.column - 1 :].startswith(key), (problem, line)


def test_hiveds_configuration_may_be_a_mapping(tmp_path: Path) -> None:
    text = "hivedscheduler: {config: {physicalCluster: {cellTypes: {a: {childCellNumber: x}}}, virtualClusters: {}}}\n"
    assert [(problem.severity, problem.column) for problem in problems(tmp_path, text)] == [
        ("warning", text.index("config") + 1),
        ("error", text.index("childCellNumber") + 1),
    ]


@pytest.mark.parametrize(
    ("text", "path", "remedy"),
    [
        ("rest-server: {jwt-secretx: a}", "rest-server.jwt-secretx", "did you mean jwt-secret?"),
        ("hivedscheduler: {confg: a}", "hivedscheduler.confg", "did you mean config?"),
        ("docker-cache: {enable: true}", "docker-cache.enable", "did you mean enabled?"),
        ("cluster: {common: {cluster-typ: k8s}}", "cluster.common.cluster-typ", "did you mean cluster-type?"),
        (
            "authentication: {group-manager: {grouplist: [{}, {extension: {acls: {storageConfig: [x]}}}]}}",
            "authentication.group-manager.grouplist[1].extension.acls.storageConfig",
            "did you mean storageConfigs?",
        ),
        ("pylon: {prt: }", "pylon.prt", "did you mean port?"),
    ],
)
def test_unknown_keys_are_warnings_with_the_nearest_name(tmp_path: Path, text: str, path: str, remedy: str) -> None:
    [problem] = [found for found in problems(tmp_path, text + "\n") if found.code != "site.missing"]
    assert (problem.path, problem.severity, problem.code) == (path, "warning", "site.unknown-key")
    assert problem.remedy == remedy


def test_a_description_of_a_storage_has_a_limit(tmp_path: Path) -> None:
    for length, codes in ((500, set()), (501, {"site.storage-description"})):
        storage = f"storages: [{{name: a, type: hostPath, path: /a, description: {'x' * length}}}]\n"
        found = problems(tmp_path, storage)
        assert {one.code for one in found if one.path == "storages[0].description"} == codes


def test_groups_and_what_they_may_use(tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path, services=GENERATED)).site
    assert site.services.authentication is not None
    manager = site.services.authentication.group_manager
    assert manager is not None
    assert [group.groupname for group in manager.groups] == ["admingroup", "default"]
    acls = manager.groups[1].extension.acls
    assert (acls.admin, acls.virtual_clusters, acls.storage_configs) == (False, ("default",), ("data",))


def test_sections_that_are_not_decided_are_kept(tmp_path: Path) -> None:
    site = load_site(write_site(tmp_path, services="health: {a: 1, secret: pl4nted}\n")).site
    assert site.services.health is not None
    assert site.services.health.content == {"a": 1, "secret": "pl4nted"}
    assert "pl4nted" not in repr(site)


SECRETS = """\
rest-server: {default-pai-admin-password: pl4nted, jwt-secret: pl4nted, log_azure_storage_account_key: pl4nted}
cluster: {docker-registry: {username: x, password: pl4nted}}
docker-cache: {azure_account_key: pl4nted, registry-htpasswd: pl4nted}
authentication: {AAD: {clientSecret: pl4nted}}
storages: [{name: a, type: smb, server: s, share-name: s, username: u, password: pl4nted}]
storage-manager: {smbpwd: pl4nted, domainpwd: pl4nted}
postgresql: {passwd: pl4nted}
log-manager: {admin_password: pl4nted, jwt_secret: pl4nted}
alert-manager: {pai-bearer-token: pl4nted, alert-handler: {email-configs: {smtp-auth-password: pl4nted}}}
marketplace-db: {passwd: pl4nted}
marketplace-restserver: {azure_storage: {connection_strings: ["AccountKey=pl4nted"]}, azure_storage_json: pl4nted}
"""


def test_secrets_are_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_site(tmp_path, services=SECRETS)
    site = load_site(tmp_path).site
    assert SECRETS.count("pl4nted") == 18
    assert "pl4nted" not in repr(site)
    assert site.services.postgresql is not None
    assert site.services.postgresql.passwd is not None
    assert site.services.postgresql.passwd.get_secret_value() == "pl4nted"
    for options in ([], ["--annotate"], ["--format", "json"]):
        assert run(["validate", "--site", str(tmp_path), *options]) == 0
        assert "pl4nted" not in capsys.readouterr().out


def test_a_secret_may_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMB_PASSWORD", "from outside")
    site = load_site(write_site(tmp_path, services="storage-manager: {smbpwd: {env: SMB_PASSWORD}}\n")).site
    assert site.services.storage_manager is not None
    assert site.services.storage_manager.smbpwd is not None
    assert site.services.storage_manager.smbpwd.get_secret_value() == "from outside"


@pytest.mark.parametrize("name", sorted(Services.model_fields))
def test_every_section_says_whether_it_has_an_effect(name: str) -> None:
    info = Services.model_fields[name]
    markers = [marker_of(info, kind) for kind in (NotYet, WithoutEffect)]
    assert len(list(filter(None, markers))) == (0 if name in EFFECTIVE else 1)


def test_a_list_of_devices_may_have_several_forms(tmp_path: Path) -> None:
    for text in ("[NVIDIA_VISIBLE_DEVICES, HIVED_VISIBLE_DEVICES]", "NVIDIA_VISIBLE_DEVICES,HIVED_VISIBLE_DEVICES"):
        services = f"rest-server: {{hived-computing-device-envs: {text if text[0] == '[' else repr(text)}}}\n"
        site = load_site(write_site(tmp_path, services=services)).site
        assert site.services.rest_server is not None
        assert site.services.rest_server.hived_computing_device_envs == (
            "NVIDIA_VISIBLE_DEVICES",
            "HIVED_VISIBLE_DEVICES",
        )


def test_every_section_of_openpais_is_taken_without_a_remark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (OPENPAI / "services-configuration.yaml").read_text()
    write_site(tmp_path, layout=(OPENPAI / "layout.yaml").read_text(), services=text)
    loaded = load_site(tmp_path)
    scripts = [one for one in loaded.problems if one.path.startswith("webportal.plugins")]
    assert [one.code for one in scripts] == ["site.no-effect"]
    others = [one for one in loaded.problems if one not in scripts]
    assert public_secrets(others) == ["rest-server.default-pai-admin-password"]
    assert len(loaded.site.services.given) == 24
    assert text.count("planted") == 13
    assert "planted" not in repr(loaded.site)
    for options in ([], ["--annotate"], ["--format", "json"]):
        assert run(["validate", "--site", str(tmp_path), *options]) == 0
        assert "planted" not in capsys.readouterr().out


def test_what_a_files_sections_are_for_is_said_once_each(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    site = load_site(
        write_site(tmp_path, services="prometheus: {port: 1}\ngrafana: {port: 2}\npylon: {port: 3}\n")
    ).site
    assert list(pending(site)) == snapshot
