"""The rotation of identities of machines, cache, and component store: stages, and the current stage of a file. Pure.

Every stage changes the identity and then updates machines. A stage that would lock out an unreachable machine waits:
the old object stays valid until each machine has the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pai_install.registry.identity import (
    Identity,
    serve_from,
    with_content_back,
    with_content_left,
    with_new_authority,
    with_new_login,
    with_new_port,
    with_old_login,
    with_old_port,
    without_move,
    without_old_authorities,
    without_other_logins,
    without_other_ports,
)

Subject = Literal["credentials", "ca", "endpoint", "backend"]
# phases of what serves: the component store and the cache
SERVERS = frozenset({"components", "addons"})
Change = Callable[[Identity, datetime], Identity]


@dataclass(frozen=True, slots=True)
class RotationStage:
    """name: id of the stage. title: its effect. phases: update the machines.

    changed: the identity has its change. requires_all_machines: each machine must have completed the previous stage.
    copies: the cache's content is copied afterwards. verifies: machines then test the registries. undo: the change that
    rolls it back if the test fails.
    """

    name: str
    title: str
    phases: tuple[str, ...]
    change: Change
    changed: Callable[[Identity], bool]
    requires_all_machines: bool = False
    verifies: bool = False
    copies: bool = False
    undo: Change | None = None


def _serve_newest(identity: Identity, now: datetime) -> Identity:
    return serve_from(identity, identity.authorities[-1].generation, now)


def _serve_oldest(identity: Identity, now: datetime) -> Identity:
    return serve_from(identity, identity.authorities[0].generation, now)


def _serves_newest(identity: Identity) -> bool:
    return len(identity.authorities) > 1 and identity.serving_ca == identity.authorities[-1].generation


def _uses_newest(identity: Identity) -> bool:
    return len(identity.logins) > 1 and identity.login == identity.logins[-1]


def _at_newest(identity: Identity) -> bool:
    return len(identity.ports) > 1 and identity.used_port == identity.ports[-1]


def _same(identity: Identity, _now: datetime) -> Identity:
    return identity


def _never(_identity: Identity) -> bool:
    """The last stage leaves a file that looks as before the first one."""
    return False


STAGES: Mapping[Subject, tuple[RotationStage, ...]] = {
    "credentials": (
        RotationStage(
            "use-new-login",
            "The cache accepts a new login beside the old one, and machines use the new one",
            ("addons", "registries"),
            change=lambda identity, _now: with_new_login(identity),
            changed=_uses_newest,
            verifies=True,
            undo=lambda identity, _now: with_old_login(identity),
        ),
        RotationStage(
            "reject-old-login",
            "The cache no longer accepts the old login",
            ("addons",),
            change=lambda identity, _now: without_other_logins(identity),
            changed=_never,
            requires_all_machines=True,
        ),
    ),
    "ca": (
        RotationStage(
            "trust-new-authority",
            "Machines trust a new authority beside the old one",
            ("runtime", "registries"),
            change=with_new_authority,
            changed=lambda identity: len(identity.authorities) > 1,
        ),
        RotationStage(
            "serve-new-authority",
            "Component store and cache show certificates of the new authority",
            ("components", "addons"),
            change=_serve_newest,
            changed=_serves_newest,
            requires_all_machines=True,
            verifies=True,
            undo=_serve_oldest,
        ),
        # It waits for no machine: each one trusts the new authority already, and servers use nothing else.
        RotationStage(
            "distrust-old-authority",
            "Machines no longer trust the old authority",
            ("runtime", "registries"),
            change=lambda identity, _now: without_old_authorities(identity),
            changed=_never,
        ),
    ),
    "endpoint": (
        RotationStage(
            "use-new-port",
            "The cache answers at its new port beside the old one, and machines use the new one",
            ("addons", "registries"),
            change=lambda identity, _now: with_new_port(identity),
            changed=_at_newest,
            verifies=True,
            undo=lambda identity, _now: with_old_port(identity),
        ),
        RotationStage(
            "close-old-port",
            "The cache no longer answers at its old port",
            ("addons",),
            change=lambda identity, _now: without_other_ports(identity),
            changed=_never,
            requires_all_machines=True,
        ),
    ),
    # begins with the place that the cache uses in the file (with_content_kept)
    "backend": (
        RotationStage(
            "copy-content",
            "The content is copied while the cache serves it from the old place",
            (),
            change=_same,
            changed=lambda identity: identity.content is not None,
            copies=True,
        ),
        RotationStage(
            "use-new-place",
            "The cache uses the new place, and what came meanwhile is copied",
            ("addons",),
            change=lambda identity, _now: with_content_left(identity),
            changed=lambda identity: identity.left is not None,
            verifies=True,
            copies=True,
            undo=lambda identity, _now: with_content_back(identity),
        ),
        RotationStage(
            "leave-old-place",
            "The old place is no longer needed",
            (),
            change=lambda identity, _now: without_move(identity),
            changed=_never,
        ),
    ),
}


def phases(subject: Subject) -> frozenset[str]:
    """All that a rotation changes."""
    return frozenset(phase for stage in STAGES[subject] for phase in stage.phases)


def unfinished(identity: Identity) -> tuple[Subject, ...]:
    """Returns the subjects of started and incomplete rotations."""
    found: list[Subject] = []
    if len(identity.logins) > 1:
        found.append("credentials")
    if len(identity.authorities) > 1:
        found.append("ca")
    if len(identity.ports) > 1:
        found.append("endpoint")
    if identity.content is not None or identity.left is not None:
        found.append("backend")
    return tuple(found)


def port_rotation_notice(identity: Identity) -> str:
    """Returns a notice for plan and apply while the cache serves several ports, or ""."""
    newest = identity.ports[-1] if identity.ports else 0
    others = ", ".join(str(port) for port in identity.ports if port != identity.used_port)
    if not others:
        return ""
    if identity.used_port != newest:
        return (
            f"machines stay at port {identity.used_port} of the cache: {newest} was taken back; pai-install registry"
            " rotate --endpoint tries it again"
        )
    return (
        f"machines ask the cache at port {newest}; it answers at {others} as well, until pai-install registry rotate"
        " --endpoint finds every machine moved"
    )


def position(identity: Identity, subject: Subject) -> int:
    """Returns the stage at which a rotation continues: the last completed change, 0 before the start."""
    return max((number for number, stage in enumerate(STAGES[subject]) if stage.changed(identity)), default=0)
