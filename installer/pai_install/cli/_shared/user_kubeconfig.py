"""`user kubeconfig`: a token that lasts for a while, and the file that holds it."""

from __future__ import annotations

import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.cluster.client import ClusterClient, Patch
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.operations.user import USERS
from pai_install.system.files import write_secret
from pai_install.users.model import NAMESPACE
from pai_install.users.objects import expiring, kubeconfig, mark
from pai_install.users.read import Found, effective, name_of, namespace_of, over, read_time


@dataclass(frozen=True, slots=True)
class Made:
    """A kubeconfig that was written. ended: how many earlier ones were ended for it."""

    until: datetime
    namespaces: tuple[str, ...]
    ended: int


def server_of(path: Path, server: str) -> dict[str, str]:
    """What a kubeconfig says of the cluster: as the administrator's, which `apply` wrote. server: another URL, or "".

    Raises PaiError where that is missing or no kubeconfig.
    """
    remedy = "pai-install apply writes it: it makes the cluster, or takes over the one that is there"
    if not path.is_file():
        raise PaiError(
            f"{path} is missing: this dev box has not met the site's cluster yet",
            code="kubeconfig-missing",
            remedy=remedy,
            exit_code=ExitCode.USAGE,
        )
    try:
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (YAMLError, ValueError) as error:
        raise PaiError(
            f"{path} is no kubeconfig", code="kubeconfig-invalid", details=str(error), remedy=remedy
        ) from error
    (*_, cluster) = [{}, *(child(row, "cluster") for row in rows(child({"it": document}, "it").get("clusters")))]
    found = {key: text(cluster.get(key)) for key in ("server", "certificate-authority-data")}
    if not all(found.values()):
        raise PaiError(
            f"{path} names no cluster with its authority", code="kubeconfig-without-authority", remedy=remedy
        )
    return {**found, "server": server or found["server"]}


def require_free(path: Path) -> None:
    """Raises PaiError where something is: it may be the kubeconfig of another cluster."""
    if path.exists() or path.is_symlink():
        remedy = "move it away, or name another file with --output"
        raise PaiError(f"{path} exists already", code="file-exists", remedy=remedy, exit_code=ExitCode.USAGE)


def make_kubeconfig(
    cluster: ClusterClient, user: str, days: int, where: tuple[Path, Mapping[str, str]], *, replace: bool
) -> Made:
    """Writes a kubeconfig. where: the file, and what it says of the cluster. replace: earlier ones of the user end.

    Raises PaiError for a name that is no user's, and for one that is in no group.
    """
    path, server = where
    found = Found(*cluster.list(*USERS)).of(user)
    account = _account(found, user)
    namespaces = tuple(sorted(namespace_of(one) for one in found.memberships if effective(one, user)))
    if not namespaces:
        remedy = f"pai-install user add {user} --group GROUP"
        raise PaiError(
            f"{user} is a member of no group", code="user-without-group", remedy=remedy, exit_code=ExitCode.USAGE
        )
    now = datetime.now(UTC)
    uid = text(child(account, "metadata").get("uid"))
    (made,) = cluster.create([mark(user, uid, f"{user}.{secrets.token_hex(4)}")])
    try:
        token, until = _token(cluster, user, days, made)
        cluster.patch([Patch(_ref(made), expiring(until))])
        write_secret(path, _yaml(kubeconfig(user, token, server, namespaces)))
    except BaseException:
        cluster.delete([_ref(made)])
        raise
    useless = [_ref(one) for one in over(found.marks, now)]
    ended = [ref for one in found.marks if (ref := _ref(one)) not in useless] if replace else []
    cluster.delete([*useless, *ended])
    return Made(until, namespaces, len(ended))


def _token(cluster: ClusterClient, user: str, days: int, bound: JsonObject) -> tuple[str, datetime]:
    """The token, and until when it lasts."""
    account = Ref("serviceaccount", user, NAMESPACE)
    token = cluster.request_token(account, int(timedelta(days=days).total_seconds()), bound)
    until = read_time(token.until)
    if until is None or not token.text:
        raise PaiError("the API server returned no token, or one without an end", code="token-missing")
    return token.text, until


def _account(found: Found, user: str) -> JsonObject:
    if not found.accounts:
        remedy = f"pai-install user add {user} --group GROUP"
        raise PaiError(f"the cluster has no user {user}", code="unknown-user", remedy=remedy, exit_code=ExitCode.USAGE)
    return found.accounts[0]


def _ref(item: JsonObject) -> Ref:
    return Ref("secret", name_of(item), NAMESPACE)


def _yaml(document: Mapping[str, object]) -> str:
    writer, out = YAML(typ="safe"), io.StringIO()
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(dict(document), out)
    return out.getvalue()
