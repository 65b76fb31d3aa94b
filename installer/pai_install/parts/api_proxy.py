"""The API of all control planes at one local address of every machine."""

from __future__ import annotations

from collections.abc import Hashable

from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, everywhere
from pai_install.ports import API_PROXY_PORT
from pai_install.site import Machine, Site


class ApiProxyVariables(RoleVariables):
    """servers: name -> address of each control plane."""

    role = "api_proxy"
    servers: dict[str, str]
    port: int


class ApiProxy(Part):
    """Every machine."""

    name = "api_proxy"
    phase = "runtime"
    model = ApiProxyVariables

    def variables(self, context: Context, machine: Machine) -> ApiProxyVariables:
        """All control planes."""
        del machine
        servers = {master.hostname: master.hostip for master in context.site.control_planes}
        return ApiProxyVariables(servers=servers, port=API_PROXY_PORT)

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Only the machine itself connects."""
        del site, machine
        return (Port(API_PROXY_PORT, "local API load balancer", ("haproxy",)),)
