"""Metrics of each machine: a service that Prometheus reads with a certificate of the site's authority."""

from __future__ import annotations

from collections.abc import Hashable

from pai_install.parts.context import Artifact, Context
from pai_install.parts.part import Part, Port, RoleVariables, everywhere
from pai_install.ports import NODE_EXPORTER_PORT
from pai_install.registry.compile import SCRAPER_NAME
from pai_install.site import Machine, Site

_PROGRAM = "/usr/local/lib/pai-install/node_exporter"


class NodeExporterVariables(RoleVariables):
    """artifacts: the program. private_key: with the certificate before it. ca: authorities of the store and of clients.

    client: name of the program that may read the metrics.
    """

    role = "node_exporter"
    artifacts: tuple[Artifact, ...]
    port: int
    private_key: str
    ca: str
    client: str


class NodeExporterPart(Part):
    """Every machine of a site with monitoring: a full disk of a storage server stops jobs, too."""

    name = "node_exporter"
    phase = "runtime"
    model = NodeExporterVariables
    after = ("component_store",)
    removable = True

    def applies(self, site: Site, machine: Machine) -> bool:
        """Nodes and the machines beside them."""
        del site, machine
        return True

    def variables(self, context: Context, machine: Machine) -> NodeExporterVariables | None:
        """Returns the same variables for all machines, or None without monitoring."""
        del machine
        if context.site.services.monitoring is None:
            return None
        exporter = context.identity.exporter if context.identity else None
        return NodeExporterVariables(
            artifacts=context.artifacts([("node-exporter", _PROGRAM)]),
            port=exporter_port(context.site),
            private_key=exporter.chain if exporter else "",
            ca=context.authorities,
            client=SCRAPER_NAME,
        )

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def components(self, site: Site) -> frozenset[str]:
        """The program."""
        return frozenset({"node-exporter"}) if site.services.monitoring else frozenset()

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Where Prometheus reads."""
        del machine
        if not site.services.monitoring:
            return ()
        return (Port(exporter_port(site), "metrics", ("node_exporter",), clients="control planes"),)


def exporter_port(site: Site) -> int:
    """Returns the port of the node exporters, OpenPAI's by default."""
    section = site.services.node_exporter
    return section.port if section is not None else NODE_EXPORTER_PORT
