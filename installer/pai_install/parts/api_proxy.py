"""The API of all control planes at one local address of every machine."""

from __future__ import annotations

from collections.abc import Hashable

from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, everywhere
from pai_install.ports import API_PROXY_PORT
from pai_install.site import Machine, Site


class ApiProxyVariables(RoleVariables):
    """servers: name -> address of each control-plane node. check_s: seconds between checks of a healthy one."""

    role = "api_proxy"
    servers: dict[str, str]
    port: int
    check_s: int


class ApiProxy(Part):
    """Every machine."""

    name = "api_proxy"
    phase = "runtime"
    model = ApiProxyVariables
    # more machines are no reason to touch those that are there
    not_settings = frozenset({"api_proxy_check_s"})

    def variables(self, context: Context, machine: Machine) -> ApiProxyVariables:
        """All control planes."""
        del machine
        servers = {master.hostname: master.hostip for master in context.site.control_planes}
        check_s = seconds_between_checks(len(context.site.present_machines))
        return ApiProxyVariables(servers=servers, port=API_PROXY_PORT, check_s=check_s)

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """The same everywhere."""
        return everywhere(site, machine)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Only the machine itself connects."""
        del site, machine
        return (Port(API_PROXY_PORT, "local API load balancer", ("haproxy",)),)


def seconds_between_checks(machines: int) -> int:
    """2 up to 100 machines, then more: a check is a TLS handshake, and an API server gets 50 a second at most."""
    return max(2, -(-machines // 50))
