"""services-configuration.yaml: the sections that are known, and the shape of what is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pydantic_core import PydanticCustomError

from pai_install.site.document import Document, Entries, Items, Mark, Text
from pai_install.site.names import read_url
from pai_install.site.parse import parse_document
from pai_install.site.problem import YamlPath
from pai_install.site.scalars import invalid, read_count, read_port, read_text, read_word_boolean, shown
from pai_install.site.validate import did_you_mean

OPENPAI_SECTIONS = frozenset({
    "cluster", "rest-server", "webportal", "hivedscheduler", "docker-cache", "authentication", "pylon",
    "alert-manager", "prometheus", "storage-manager", "internal-storage", "postgresql", "device-plugin",
    "database-controller", "job-exporter", "node-exporter", "log-manager", "grafana",
    "prometheus-pushgateway", "marketplace-db", "marketplace-restserver", "marketplace-webportal",
    "cleaner", "frameworkcontroller", "watchdog", "openpai-runtime", "fluentd",
    "job-status-change-notification",
})  # fmt: skip
OUR_SECTIONS = frozenset({"scheduler", "virtual-clusters", "storages", "grants", "registry", "health"})
KNOWN_SECTIONS = OPENPAI_SECTIONS | OUR_SECTIONS
LISTS_ALLOWED = frozenset({"virtual-clusters", "storages", "grants"})


def _one_of(*words: str) -> Callable[[object], object]:
    def read(value: object) -> str:
        word = read_text(value)
        if word not in words:
            raise invalid("choice", f"{shown(word)} is not one of {', '.join(words)}", "choose one of them")
        return word

    return read


def _group_name(value: object) -> str:
    word = read_text(value)
    if not word.replace("_", "a").isalnum() or not word.isascii():
        raise invalid("group-name", f"{shown(word)} is not a group name", "use letters, digits and '_'; no '-'")
    return word


def _list(value: object) -> object:
    if not isinstance(value, list):
        raise invalid("type", f"a list is expected, found {shown(value)}", "write one entry per line, each after '- '")
    return value


def _node_port(value: object) -> int:
    port = read_port(value)
    if not 30000 <= port <= 32767:
        raise invalid("port", f"{port} is not a port for a NodePort service", "use 30000 to 32767")
    return port


def _group_rules(*group: str) -> dict[YamlPath, Callable[[object], object]]:
    at = ("authentication", "group-manager", *group)
    return {
        (*at, "groupname"): _group_name,
        (*at, "extension", "acls", "admin"): read_word_boolean,
        (*at, "extension", "acls", "virtualClusters"): _list,
        (*at, "extension", "acls", "storageConfigs"): _list,
    }


# "*" stands for every entry of a list
_RULES: dict[YamlPath, Callable[[object], object]] = {
    ("cluster", "common", "cluster-type"): _one_of("k8s"),
    ("rest-server", "server-port"): read_port,
    ("webportal", "server-port"): read_port,
    ("pylon", "port"): read_port,
    ("prometheus", "port"): read_port,
    ("prometheus", "scrape_interval"): read_count,
    ("alert-manager", "port"): read_port,
    ("grafana", "port"): read_port,
    ("node-exporter", "port"): read_port,
    ("job-exporter", "port"): read_port,
    ("log-manager", "port"): read_port,
    ("postgresql", "port"): read_port,
    ("hivedscheduler", "webservice-port"): _node_port,
    ("docker-cache", "enabled"): read_word_boolean,
    ("docker-cache", "storage_backend"): _one_of("azure", "filesystem"),
    ("docker-cache", "service_nodeport"): _node_port,
    ("docker-cache", "remote_url"): read_url,
    ("storage-manager", "security-type"): _one_of("AUTO", "ADS"),
    ("internal-storage", "type"): _one_of("hostPath"),
    ("internal-storage", "quota-gb"): read_count,
    ("device-plugin", "devices"): _list,
    ("authentication", "OIDC"): read_word_boolean,
    ("authentication", "group-manager", "group-data-source"): _one_of("basic", "winbind", "ms-graph"),
    **_group_rules("admin-group"),
    **_group_rules("default-group"),
    **_group_rules("grouplist", "*"),
}


def check_services(document: Document) -> None:
    """Adds an error for every value of the wrong shape, and a warning for every unknown section."""
    for section, value in document.content.items():
        _check_section(document, section, value)
    for pattern, read in _RULES.items():
        for path, value in _matches(document.content, pattern):
            _check_value(document, path, value, read)
    _check_registry_login(document)
    _check_hived(document)


def _check_section(document: Document, section: str, value: object) -> None:
    if section not in KNOWN_SECTIONS:
        remedy = did_you_mean(section, KNOWN_SECTIONS)
        message = "is not a known section and has no effect"
        document.add((section,), "site.unknown-section", message, remedy, severity="warning")
        return
    lists = section in LISTS_ALLOWED and isinstance(value, list)
    if value is not None and not isinstance(value, dict) and not lists:
        found = shown(value) if isinstance(value, list) else "text"
        document.add((section,), "site.type", f"a mapping is expected, found {found}", "write lines of `key: value`")


def _check_value(document: Document, path: YamlPath, value: object, read: Callable[[object], object]) -> None:
    try:
        read(value)
    except PydanticCustomError as error:
        context = error.context or {}
        document.add(path, error.type, context.get("message", ""), context.get("remedy", ""))


def _matches(value: Any, pattern: YamlPath, path: YamlPath = ()) -> Iterator[tuple[YamlPath, Any]]:  # noqa: ANN401
    """The values that `pattern` leads to; those without a value are passed over."""
    if not pattern:
        if value is not None:
            yield path, value
    elif pattern[0] == "*" and isinstance(value, Items):
        for index, item in enumerate(value):
            yield from _matches(item, pattern[1:], (*path, index))
    elif isinstance(value, Entries) and pattern[0] in value:
        yield from _matches(value[str(pattern[0])], pattern[1:], (*path, pattern[0]))


def _check_registry_login(document: Document) -> None:
    for path, registry in _matches(document.content, ("cluster", "docker-registry")):
        if isinstance(registry, Entries) and ("username" in registry) != ("password" in registry):
            document.add(path, "site.missing", "username and password go together", "give both or neither")


def _check_hived(document: Document) -> None:
    """The HiveD configuration is YAML inside a block of text: its errors are placed at the file's own lines."""
    for path, config in _matches(document.content, ("hivedscheduler", "config")):
        if not isinstance(config, Text):
            continue
        inner = Document(document.file, document.folder)
        parse_document(str(config), inner, top="physicalCluster and virtualClusters")
        for problem in inner.problems:
            line = min(config.mark.line + problem.line, len(document.lines))
            indent = len(document.lines[line - 1]) - len(document.lines[line - 1].lstrip())
            mark = Mark(line, indent + 1)
            document.add(path, problem.code, problem.message, problem.remedy, mark=mark)
        if inner.root is not None:
            for key in ("physicalCluster", "virtualClusters"):
                if key not in inner.root:
                    document.add(path, "site.missing", f"{key} is missing in the HiveD configuration", "add it")
