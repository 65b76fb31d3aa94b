"""services-configuration.yaml: the sections that are known, and their shape."""

from __future__ import annotations

from pai_install.site.document import Document
from pai_install.site.scalars import shown
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
_LISTS_ALLOWED = frozenset({"virtual-clusters", "storages", "grants"})


def check_services(document: Document) -> None:
    """Adds a problem for every section that is no mapping, and a warning for every unknown one."""
    for section, value in document.content.items():
        if section not in KNOWN_SECTIONS:
            remedy = did_you_mean(section, KNOWN_SECTIONS)
            document.add(
                (section,),
                "site.unknown-section",
                "is not a known section and has no effect",
                remedy,
                severity="warning",
            )
        elif (
            value is not None
            and not isinstance(value, dict)
            and not (section in _LISTS_ALLOWED and isinstance(value, list))
        ):
            found = shown(value) if isinstance(value, list) else "text"
            document.add((section,), "site.type", f"a mapping is expected, found {found}")
