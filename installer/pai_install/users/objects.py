"""Objects of a user: account, bindings to groups, and marks of kubeconfigs. Pure.

Reasons for accounts instead of certificates: docs/decisions/011-users-are-service-accounts.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from pai_install.users.model import ADMIN, EXPIRES, GROUP, MEMBER, NAMESPACE, OWNER
from pai_install.users.rights import RBAC

Object = dict[str, Any]

# objects of a user have no record: what `apply` does not know it does not take away
_MANAGED = {"app.kubernetes.io/managed-by": "pai-install"}


def account(user: str) -> Object:
    """The account. No pod runs as it: members make none in its namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": user, "namespace": NAMESPACE, "labels": _labels(user)},
        "automountServiceAccountToken": False,
    }


def membership(user: str, group: str, namespace: str) -> Object:
    """Returns the binding that makes the user a member of the namespace's group."""
    metadata = {"name": bound(user), "namespace": namespace, "annotations": {GROUP: group}}
    return _binding("RoleBinding", metadata, user, MEMBER)


def administration(user: str) -> Object:
    """Returns the binding that makes the user an administrator."""
    return _binding("ClusterRoleBinding", {"name": bound(user)}, user, ADMIN)


def bound(user: str) -> str:
    """The name of its bindings."""
    return f"pai-user-{user}"


def _binding(kind: str, metadata: Object, user: str, role: str) -> Object:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": kind,
        "metadata": {**metadata, "labels": _labels(user)},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": user, "namespace": NAMESPACE}],
    }


def _labels(user: str) -> dict[str, str]:
    return {**_MANAGED, OWNER: user}


def mark(user: str, account_uid: str, name: str) -> Object:
    """Returns the empty object to which a kubeconfig's token is bound. Its deletion revokes the token.

    It is deleted with the account.
    """
    # With the UID, a new account of the same name does not own the mark of the old one.
    owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": user, "uid": account_uid}
    metadata = {"name": name, "namespace": NAMESPACE, "labels": _labels(user), "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "pai-install/kubeconfig"}


def expiring(until: datetime) -> Object:
    """A merge patch: until when the kubeconfig lasts that a mark stands for."""
    return {"metadata": {"annotations": {EXPIRES: until.isoformat()}}}


def kubeconfig(user: str, token: str, cluster: Mapping[str, str], namespaces: tuple[str, ...]) -> Object:
    """The kubeconfig: one context for each namespace, the first of them the current one.

    cluster: server, and certificate-authority-data.
    """
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "pai", "cluster": dict(cluster)}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": list(_contexts(user, namespaces)),
        "current-context": namespaces[0],
    }


def _contexts(user: str, namespaces: tuple[str, ...]) -> Iterator[Object]:
    for namespace in namespaces:
        yield {"name": namespace, "context": {"cluster": "pai", "user": user, "namespace": namespace}}
