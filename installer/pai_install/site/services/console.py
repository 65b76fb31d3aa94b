"""console: OpenPAI's API and web pages in the cluster. An extension."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema

from pai_install.documents.scalars import invalid, read_whole
from pai_install.site.certificate import CertificateFile
from pai_install.site.fields import HostName
from pai_install.site.secret import Secret
from pai_install.site.services.section import Count, Flag, KebabSection, ListOf, Port, choice

HTTPS_PORT, HTTP_PORT, WEB_PORT = 443, 80, 8444
_OFF = (False, "false", "False", "FALSE", "no", "off")
_ON = (True, "true", "True", "TRUE", "yes", "on")


def _up_to(most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    def read(value: object) -> int:
        found = read_whole(value)
        if not 1 <= found <= most:
            raise invalid("range", f"{found} is not from 1 to {most}", f"write a number from 1 to {most}")
        return found

    return BeforeValidator(read), WithJsonSchema({"type": ["integer", "string"], "minimum": 1, "maximum": most})


class SignIn(KebabSection):
    """console.sign-in: the life of sessions and tokens."""

    session_hours: Annotated[int, *_up_to(168)] = 168
    """Hours after which a session ends."""
    idle_hours: Annotated[int, *_up_to(168)] = 8
    """Hours without a request after which a session ends."""
    token_days: Annotated[int, *_up_to(365)] = 90
    """Days after which a token of a program ends."""


class Rates(KebabSection):
    """console.rates: requests of one user."""

    api_per_min: Count = 600
    """Requests of any kind in a minute."""
    list_per_min: Count = 120
    """Lists of jobs in a minute."""
    submit_per_hour: Count = 3600
    """Submitted jobs in an hour."""


class Console(KebabSection):
    """console: the web server on the control planes. `console: false` removes it."""

    enabled: Flag = True
    """Whether it is installed."""
    names: Annotated[tuple[HostName, ...], ListOf] = ()
    """Host names of the console beside the names and addresses of the control planes. The first one is in links."""
    port: Port = HTTPS_PORT
    """Port of HTTPS."""
    http: Flag = True
    """Whether port 80 redirects browsers to HTTPS."""
    web_port: Port = WEB_PORT
    """Port of web pages and SSH servers in jobs. It is closed without `group_isolation`."""
    certificate: CertificateFile | None = None
    """PEM file on the controller host with the certificate chain. [default: signed by the authority of the site]"""
    key: Secret | None = Field(default=None, repr=False)
    """The private key (PEM) of `certificate`."""
    passwords: Flag = True
    """Whether users sign in with passwords."""
    hide_users: Flag = False
    """Whether an unknown user and a wrong password have the same error."""
    sign_in: SignIn = SignIn()
    """Life of sessions and tokens."""
    rates: Rates = Rates()
    """Limits of requests."""
    legacy_ports: Flag = False
    """Whether it also listens on the ports of OpenPAI without pylon: 9186 and 9286, with TLS."""
    language: Annotated[str, choice("en", "zh")] = "en"
    """Language of the pages: en or zh."""


def read_console(value: object) -> object:
    """`false` and `true` are short for the key `enabled`."""
    # `console: false` is text here like every scalar, so each spelling of a YAML boolean counts.
    if isinstance(value, str | bool) and value in (*_OFF, *_ON):
        return Console(enabled=value in _ON)
    return value


ConsoleSection = Annotated[
    Console,
    BeforeValidator(read_console),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "object"}]}),
]
