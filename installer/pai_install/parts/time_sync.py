"""One clock: control planes serve the time, workers take it from them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated

from pai_install.parts.context import Context
from pai_install.parts.part import Part, Port, RoleVariables, by_kind, restarts
from pai_install.site import Machine, Site

_TIME_PROGRAMS = ("chronyd", "ntpd", "ntpsec", "openntpd")
# A list of machines would change on every control plane with each new one; the time is no secret, an answer is no
# longer than its question, and the role limits how often anybody is answered.
_EVERYBODY = ("0.0.0.0/0",)

_CHRONY = restarts("chrony.service")


class TimeSyncVariables(RoleVariables):
    """servers: where the time comes from. allow: networks (CIDR) it is served to."""

    role = "time_sync"
    servers: Annotated[tuple[str, ...], _CHRONY]
    allow: Annotated[tuple[str, ...], _CHRONY]
    exclusive: Annotated[bool, _CHRONY]


class TimeSync(Part):
    """chrony on every machine."""

    name = "time_sync"
    phase = "time"
    model = TimeSyncVariables
    restarts = ("chrony.service",)
    stops = ("systemd-timesyncd.service", "ntp.service", "ntpsec.service", "openntpd.service")

    def applies(self, site: Site, machine: Machine) -> bool:
        """Nodes and the machines beside them."""
        del site, machine
        return True

    def variables(self, context: Context, machine: Machine) -> TimeSyncVariables:
        """Control planes ask the site's servers, or the distribution's own."""
        if machine.control_plane:
            upstreams = context.site.settings.ntp_servers
            return TimeSyncVariables(servers=upstreams, allow=_EVERYBODY, exclusive=bool(upstreams))
        servers = tuple(master.hostip for master in context.site.control_planes)
        return TimeSyncVariables(servers=servers, allow=(), exclusive=True)

    def alike(self, site: Site, machine: Machine) -> Hashable:
        """Nothing of the machine itself matters."""
        return by_kind(site, machine)

    def ports(self, site: Site, machine: Machine) -> tuple[Port, ...]:
        """Returns the port of the time service. Another service may have used it before."""
        del site
        served = Port(123, "time", ("chronyd",), "udp", _TIME_PROGRAMS, "machines")
        return (served,) if machine.control_plane else ()
