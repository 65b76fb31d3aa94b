"""Templates that all groups see: their namespace, who reads it, and the policy that administrators alone write. Pure.

A role knows no administrators: these are bound in the whole cluster. So the role permits writing, and the policy, which
counts in this namespace alone, refuses all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pai_install.scheduling.admission import RequestKind, Rule, in_force, literal, policy
from pai_install.site.groups import TEMPLATE_LABEL
from pai_install.site.groups import TEMPLATES_NAMESPACE as SPACE
from pai_install.users.directory import PREFIX
from pai_install.users.job_rules import no_finalizer, small_metadata
from pai_install.users.model import NAMESPACE, SUBMITTERS
from pai_install.users.policies import OF_USERS, small_data, user_variables
from pai_install.users.rights import RBAC, rule_on

Object = dict[str, Any]

_NAME = "pai-templates"
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


def template_rights(directory_groups: Iterable[str | None]) -> Iterator[Object]:
    """Yields namespace, role, binding, and policy. directory_groups: of an identity provider, without their prefix."""
    yield {
        "apiVersion": "v1",
        "kind": "Namespace",
        # A deleted namespace would take the templates along.
        "metadata": {"name": SPACE, "annotations": {"pai-install/removal": "release"}},
    }
    # before the role, because it limits who writes
    yield from in_force(_policy(), (SPACE,))
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": {"name": _NAME, "namespace": SPACE},
        "rules": [rule_on("", ("configmaps",), _VERBS)],
    }
    groups = (f"system:serviceaccounts:{NAMESPACE}", SUBMITTERS, *(f"{PREFIX}{one}" for one in directory_groups if one))
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": _NAME, "namespace": SPACE},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": _NAME},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": name} for name in dict.fromkeys(groups)],
    }


def _policy() -> Object:
    labels = "object.metadata.labels"
    rules = (
        Rule("variables.administers", "'administrators alone publish templates'"),
        Rule(
            f"object == null || (has({labels}) && {literal(TEMPLATE_LABEL)} in {labels})",
            f"'a template has the label {TEMPLATE_LABEL}'",
        ),
        no_finalizer(),
        *small_metadata(),
        small_data("data", "binaryData"),
    )
    kind = RequestKind("", "v1", "configmaps", ("CREATE", "UPDATE", "DELETE"))
    return policy("pai-users-templates", kind, rules, user_variables(), OF_USERS)
