"""What is asked of `pai-install storage rotate`, and the words that its modules share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pai_install.checks.verdict import Verdict
from pai_install.cli._shared.tell import say
from pai_install.cluster.client import ClusterClient
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.report.model import Outcome
from pai_install.report.storage import Consumer, consumers_text
from pai_install.site.model import Site
from pai_install.site.rotations import Value
from pai_install.site.services.storages import StorageEntry
from pai_install.storage.model import Grant

VERB = "storage rotate"
KINDS = ("persistentvolumeclaims", "persistentvolumes", "secrets")
BIND_S = 60.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked for. changes: keys of the definition; finish: only go on with what was begun.

    same_name: the claim keeps its name. emergency: pods that use the old generation are ended. copy: whether the data
    comes over; None for as it was begun. timeout_s: how long to wait for pods.
    """

    name: str
    changes: Mapping[str, Value]
    finish: bool = False
    same_name: bool = False
    emergency: bool = False
    copy: bool | None = None
    timeout_s: float = 600


def wait_bound(cluster: ClusterClient, grant: Grant) -> None:
    """Waits a while; whether it came to it is for a trial to say."""
    claim = Ref("persistentvolumeclaim", grant.claim, grant.namespace)
    cluster.wait([claim], "jsonpath={.status.phase}=Bound", BIND_S)


def tell_users(users: Collection[Consumer]) -> None:
    """Says which pods they are, and on which nodes."""
    nodes = sorted({one.node for one in users if one.node})
    say(f"\n{consumers_text(users)}on {', '.join(nodes) or 'no node yet'}\n" if users else "\nno pod uses it now\n")


def good(outcome: Outcome) -> bool:
    """Whether every worker could."""
    failed = any(found.verdict in (Verdict.FAIL, Verdict.UNKNOWN) for found in outcome.findings)
    return outcome.exit_code == ExitCode.OK and not failed


def entry_of(site: Site, name: str) -> StorageEntry:
    """The definition in the site's files."""
    return next(one for one in site.services.storages or () if one.name == name)


def refusal(code: str, message: str, remedy: str) -> PaiError:
    """What the user has to settle first."""
    return PaiError(message, code=code, remedy=remedy, exit_code=ExitCode.PREFLIGHT_FAILED)
