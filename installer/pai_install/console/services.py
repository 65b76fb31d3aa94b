"""What routes use: settings, authenticators, and clients of the cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from pai_install.console.caller import Authenticator, Caller, Clients
from pai_install.console.errors import RestError
from pai_install.console.links import LinkSealer
from pai_install.console.log_reader import LogReader
from pai_install.console.metrics import RequestMetrics
from pai_install.console.model.read_model import ReadModel
from pai_install.console.monitoring import MonitoringReader
from pai_install.console.rates import RateGate
from pai_install.console.settings import ConsoleSettings
from pai_install.console.sign_in.service import SignInService
from pai_install.console.streams import StreamGate
from pai_install.errors import PaiError

# checks while a person types: they take none of the person's submissions
_CHECKS = (60, 60.0)


@dataclass(frozen=True)
class ConsoleServices:
    """What routes use.

    authenticators: of the API, in this order. page_authenticators: of pages, by their cookie. portal_authenticators: of
    OpenPAI's web portal, by its cookie. api_routes, page_routes: of other packages, below /rest-server and at the
    root. current: an earlier caller of now, None if a right is gone. sign_in: behind the pages of users and
    accounts, None without them.
    """

    settings: ConsoleSettings
    clients: Clients
    authenticators: tuple[Authenticator, ...] = ()
    api_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)
    page_routes: tuple[BaseRoute, ...] = field(default=(), repr=False)
    page_authenticators: tuple[Authenticator, ...] = ()
    portal_authenticators: tuple[Authenticator, ...] = ()
    current: Callable[[Caller], Caller | None] = field(default=lambda caller: caller, repr=False)
    model: ReadModel = field(default=None, repr=False)  # type: ignore[assignment] # one of these clients
    sign_in: SignInService | None = field(default=None, repr=False)
    monitoring: MonitoringReader | None = field(init=False, repr=False)
    logs: LogReader | None = field(init=False, repr=False)
    rates: RateGate = field(init=False, repr=False)
    metrics: RequestMetrics = field(default_factory=RequestMetrics, repr=False)
    streams: StreamGate = field(default_factory=StreamGate, repr=False)
    large_bodies: StreamGate = field(default_factory=lambda: StreamGate(8, 64, "large requests"), repr=False)
    # each waits for the end of a job, and holds a thread meanwhile
    restarts: StreamGate = field(default_factory=lambda: StreamGate(2, 8, "starts of jobs"), repr=False)
    uploads: StreamGate = field(default_factory=lambda: StreamGate(1, 1, "uploads of code"), repr=False)
    links: LinkSealer = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rates = self.settings.rates
        limits = {
            "api": (rates.api_per_min, 60.0),
            "list": (rates.list_per_min, 60.0),
            "submit": (rates.submit_per_hour, 3600.0),
            "typed": _CHECKS,
        }
        monitoring = self.settings.monitoring
        object.__setattr__(self, "monitoring", MonitoringReader(monitoring) if monitoring is not None else None)
        logs = self.settings.logs
        object.__setattr__(self, "logs", LogReader(logs) if logs is not None else None)
        object.__setattr__(self, "model", self.model or ReadModel(self.clients))
        object.__setattr__(self, "rates", RateGate(limits))
        object.__setattr__(self, "links", LinkSealer(self.settings.signing_key))

    def still(self, caller: Caller) -> Caller | None:
        """The caller of a stream, as `current` has it. None ends the stream, and its client asks again."""
        try:
            return self.current(caller)
        except (RestError, PaiError):
            return None
