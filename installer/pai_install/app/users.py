"""Use cases of users beside `user add` and `user remove`: list, import, and make credentials."""

from __future__ import annotations

import io
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FilePath
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pai_install.app.cluster_context import ClusterContext
from pai_install.app.context import App, RunOptions
from pai_install.cluster.client import ApiError, ClusterClient, Patch, Select
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject, child, rows, text
from pai_install.operations.user import USERS, require_name
from pai_install.operations.user_import import UserImport
from pai_install.site.console import addresses
from pai_install.system.files import write_secret
from pai_install.system.parameters import Parameter
from pai_install.users.console_rights import NAMESPACE as CONSOLE
from pai_install.users.credentials import (
    HASH,
    REVOKED_HASH,
    SINCE,
    Credential,
    CredentialKind,
    credential_of,
    fingerprint,
    secret_of,
)
from pai_install.users.credentials import KIND as CREDENTIAL
from pai_install.users.import_file import MAX_BYTES, parse_users
from pai_install.users.model import NAMESPACE, OWNER, User
from pai_install.users.objects import expiring, kubeconfig, mark
from pai_install.users.read import UserObjects, effective, name_of, namespace_of, over, read_time

# seconds until all replicas of the console know a change of a Secret
_KNOWN_S = 2.0


def list_users(app: ClusterContext) -> tuple[User, ...]:
    """The users of the cluster. Raises NoClusterError and ApiError."""
    return UserObjects(*app.cluster.list(*USERS)).users


class ImportUsers(BaseModel):
    """A file of users."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Annotated[FilePath, Parameter(positional=True, metavar="FILE")]


def import_users(app: App, request: ImportUsers, run: RunOptions) -> int:
    """Makes all persons of a file users, and returns the exit code. Raises PaiError for an unusable file."""
    with request.file.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    return app.exit_code(UserImport(users=parse_users(content)), run)


class MakePasswordLink(BaseModel):
    """A link with which a user sets a password of the console."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    hours: int = Field(default=24, ge=1, le=168, description="Lifetime in hours.")
    server: Annotated[str, Parameter(metavar="URL", default="the first name of the console")] = Field(
        default="", description="URL of the console for users."
    )
    replace: bool = Field(
        default=False, description="Revoke the password of the user, and all sessions and tokens of the console."
    )


@dataclass(frozen=True, slots=True)
class PasswordLink:
    """A link that counts once. It is in no repr."""

    url: str = field(repr=False)
    user: str
    until: datetime


def make_password_link(app: App, request: MakePasswordLink) -> PasswordLink:
    """Makes a link for a new password. The cluster keeps only its fingerprint. Earlier links of the user end.

    With `replace`, all that the user signs in with ends at once, but for kubeconfigs.
    Raises PaiError for an unknown user, and for a cluster without a console.
    """
    require_name(request.name)
    server = request.server or next(iter(addresses(app.site)), "")
    if not server:
        raise _no_console(request.name)
    return password_link(app.cluster, request.name, server, timedelta(hours=request.hours), replace=request.replace)


def password_link(
    cluster: ClusterClient, user: str, server: str, lasting: timedelta, *, replace: bool = False
) -> PasswordLink:
    """As `make_password_link`, with a client of the cluster."""
    secret, until = secrets.token_urlsafe(24), datetime.now(UTC) + lasting
    account = _account(UserObjects(*cluster.list(*USERS)).of(user), user)
    uid = text(child(account, "metadata").get("uid"))
    credential = Credential(CredentialKind.LINK, fingerprint(secret), user, uid, until)
    earlier = Select(("secrets",), CONSOLE, f"{CREDENTIAL}={CredentialKind.LINK},{OWNER}={user}")
    try:
        (old,) = cluster.list(earlier)
        cluster.create([secret_of(credential)])
    except ApiError as error:
        if error.reason != "NotFound":
            raise
        raise _no_console(user) from error
    # The earlier links end last, so that a refused creation leaves them valid.
    cluster.delete(_refs(old, CredentialKind.LINK))
    if replace:
        _revoke(cluster, user, uid)
    return PasswordLink(f"{server.rstrip('/')}/password/{secret}", user, until)


def _revoke(cluster: ClusterClient, user: str, uid: str) -> None:
    """Ends the password, sessions, and tokens of a user."""
    password = Credential(CredentialKind.PASSWORD, user, user, uid, data={HASH: REVOKED_HASH, SINCE: ""})
    # Until all replicas of the console know it, a thief can still make a token or set a password.
    for pause in (_KNOWN_S, 0.0):
        cluster.apply([secret_of(password)], force=True)
        (found,) = cluster.list(Select(("secrets",), CONSOLE, f"{OWNER}={user}"))
        cluster.delete(_refs(found, CredentialKind.SESSION, CredentialKind.TOKEN))
        time.sleep(pause)


def _refs(items: Iterable[JsonObject], *kinds: CredentialKind) -> list[Ref]:
    """The Secrets of these kinds."""
    found = [one for item in items if (one := credential_of(item)) is not None]
    return [one.ref for one in found if one.kind in kinds]


class MakeKubeconfig(BaseModel):
    """A kubeconfig for a user."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    days: int = Field(default=30, ge=1, le=365, description="Lifetime in days.")
    output: Annotated[Path | None, Parameter(default="NAME.kubeconfig")] = Field(
        default=None, description="New file for the kubeconfig."
    )
    server: Annotated[str, Parameter(metavar="URL", default="the API server of `kubectl`")] = Field(
        default="", description="URL of the API server for users."
    )
    replace: bool = Field(default=False, description="Revoke all earlier kubeconfigs of the user.")


@dataclass(frozen=True, slots=True)
class UserKubeconfig:
    """A written kubeconfig. revoked: the number of earlier ones that were revoked."""

    path: Path
    until: datetime
    namespaces: tuple[str, ...]
    revoked: int


def make_kubeconfig(app: App, request: MakeKubeconfig) -> UserKubeconfig:
    """Writes a kubeconfig with a context for each of the user's groups.

    Raises PaiError for an existing file, an unknown user, and a user without a group.
    """
    require_name(request.name)
    path = request.output or Path(f"{request.name}.kubeconfig")
    _require_free(path)
    server = _server(app.state.path / "kubeconfig", request.server)
    return _Writer(app.cluster, request, path, server).write()


@dataclass(frozen=True, slots=True)
class _Writer:
    cluster: ClusterClient
    request: MakeKubeconfig
    path: Path
    server: Mapping[str, str]

    def write(self) -> UserKubeconfig:
        user, cluster = self.request.name, self.cluster
        found = UserObjects(*cluster.list(*USERS)).of(user)
        account = _account(found, user)
        namespaces = tuple(sorted(namespace_of(one) for one in found.memberships if effective(one, user)))
        if not namespaces:
            raise PaiError(
                f"cannot make a kubeconfig for {user}: the user is not a member of any group",
                code="user-without-group",
                remedy=f"run pai-install user add {user} --group GROUP",
                exit_code=ExitCode.USAGE,
            )
        now = datetime.now(UTC)
        uid = text(child(account, "metadata").get("uid"))
        # The token is bound to this Secret, so that a deletion of the Secret revokes the kubeconfig.
        (created,) = cluster.create([mark(user, uid, f"{user}.{secrets.token_hex(4)}")])
        try:
            token, until = self._token(created)
            cluster.patch([Patch(_ref(created), expiring(until))])
            write_secret(self.path, _yaml(kubeconfig(user, token, self.server, namespaces)))
        except BaseException:
            # A kubeconfig that was not written must not leave a valid token.
            cluster.delete([_ref(created)])
            raise
        expired = [_ref(one) for one in over(found.marks, now)]
        revoked = [ref for one in found.marks if (ref := _ref(one)) not in expired] if self.request.replace else []
        cluster.delete([*expired, *revoked])
        return UserKubeconfig(self.path, until, namespaces, len(revoked))

    def _token(self, bound: JsonObject) -> tuple[str, datetime]:
        """The token, and its end."""
        account = Ref("serviceaccount", self.request.name, NAMESPACE)
        lifetime = timedelta(days=self.request.days)
        token = self.cluster.request_token(account, int(lifetime.total_seconds()), bound)
        until = read_time(token.until)
        if until is None or not token.text:
            raise PaiError(
                "cannot create a token: the API server returned none, or one without an end", code="token-missing"
            )
        return token.text, until


def _no_console(user: str) -> PaiError:
    return PaiError(
        f"cannot make a link for {user}: the cluster has no console",
        code="console-missing",
        remedy="define groups and a scheduler in services-configuration.yaml, without console: false, and apply",
        exit_code=ExitCode.USAGE,
    )


def _server(path: Path, server: str) -> dict[str, str]:
    """The fields of a kubeconfig's cluster, from the administrator's. server: another URL, or "".

    Raises PaiError where that file is missing or invalid.
    """
    remedy = "run pai-install apply, which writes the file"
    if not path.is_file():
        raise PaiError(
            f"cannot read {path}: this host has no access to the cluster yet",
            code="kubeconfig-missing",
            remedy=remedy,
            exit_code=ExitCode.USAGE,
        )
    try:
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (YAMLError, ValueError) as error:
        raise PaiError(
            f"cannot read {path}: it is not a kubeconfig", code="kubeconfig-invalid", details=str(error), remedy=remedy
        ) from error
    (*_, cluster) = [{}, *(child(row, "cluster") for row in rows(child({"it": document}, "it").get("clusters")))]
    found = {key: text(cluster.get(key)) for key in ("server", "certificate-authority-data")}
    if not all(found.values()):
        raise PaiError(
            f"cannot read {path}: it contains no cluster with a certificate authority",
            code="kubeconfig-without-authority",
            remedy=remedy,
        )
    return {**found, "server": server or found["server"]}


def _require_free(path: Path) -> None:
    """Raises PaiError for an existing file: it may be the kubeconfig of another cluster."""
    if path.exists() or path.is_symlink():
        remedy = "move it away, or name another file with --output"
        raise PaiError(
            f"cannot write {path}: the file exists", code="file-exists", remedy=remedy, exit_code=ExitCode.USAGE
        )


def _account(found: UserObjects, user: str) -> JsonObject:
    if not found.accounts:
        raise PaiError(
            f"cannot find user {user} in the cluster",
            code="unknown-user",
            remedy=f"run pai-install user add {user} --group GROUP",
            exit_code=ExitCode.USAGE,
        )
    return found.accounts[0]


def _ref(item: JsonObject) -> Ref:
    return Ref("secret", name_of(item), NAMESPACE)


def _yaml(document: Mapping[str, object]) -> str:
    writer, out = YAML(typ="safe"), io.StringIO()
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(dict(document), out)
    return out.getvalue()
