"""Policies that restrict users to their own jobs and their group's data. Roles know no owner and no content. Pure.

The API server enforces them without a program that could be down. They apply to requests of users only. Controllers
create pods of jobs that were checked before, and pai-install's own requests come from its administrator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pai_install.scheduling.admission import RequestKind, Rule, in_force, literal, policy
from pai_install.scheduling.device_shares import ShareRules
from pai_install.scheduling.job_kinds import POD, JobKind, templates
from pai_install.scheduling.unqueued import UnqueuedRules
from pai_install.site.groups import RECORD_LABEL, STOPPED_BY
from pai_install.site.services.virtual_clusters import SchedulerType
from pai_install.site.use_limits import WARNED
from pai_install.users.directory import PREFIX, label
from pai_install.users.job_rules import job_rules, no_finalizer, small_metadata
from pai_install.users.kinds import kinds_at, requests
from pai_install.users.model import ACCOUNT_PREFIX, OWNER
from pai_install.users.pod_rules import own_secret, pod_rules
from pai_install.users.quotas import MAX_DATA
from pai_install.users.rights import ADMINISTRATE

Object = dict[str, Any]

_ALL = ("CREATE", "UPDATE", "DELETE")
_LABEL = literal(OWNER)
# all pods have its content, and believe the API server of that authority
_AUTHORITY = "kube-root-ca.crt"


def policies(
    scheduler: SchedulerType | None,
    namespaces: Iterable[str],
    clusters: Mapping[str, Iterable[str]] | None = None,
    priorities: Mapping[str, Iterable[str]] | None = None,
    unqueued: UnqueuedRules | None = None,
    shares: ShareRules | None = None,
) -> Iterator[Object]:
    """All of them with their bindings, for users of ours and of a directory.

    namespaces: of all groups. clusters: namespace -> virtual clusters of its group, None where the site has none.
    priorities: namespace -> classes that its pods may have, None for any but those of the system. unqueued: None
    without a limit of pods outside queues. shares: None without a limit of cores and memory per device.
    """
    within = tuple(namespaces)
    for kind in (*kinds_at(scheduler), POD):
        yield from in_force(_jobs(kind, job_rules(kind, scheduler, clusters, priorities, unqueued, shares)), within)
    yield from in_force(_config_maps(), within)
    yield from in_force(_secrets(), within)


_NAME = "request.userInfo.username"
# a site without a directory has them, too: they count before anybody of one could ask for anything
OF_USERS = {"a-user": " || ".join(f"{_NAME}.startsWith({literal(prefix)})" for prefix in (ACCOUNT_PREFIX, PREFIX))}


def user_variables() -> Mapping[str, str]:
    """user: as labels take the name. That of a directory's has a '.', one of ours has none."""
    account = f"{_NAME}.startsWith({literal(ACCOUNT_PREFIX)}) ? {_NAME}.substring({len(ACCOUNT_PREFIX)})"
    # Policies cannot see roles. So the API server's own authorizer is asked about a resource that only exists for this.
    group, resource, verb = map(literal, ADMINISTRATE)
    check = f"authorizer.group({group}).resource({resource}).namespace(request.namespace).check({verb})"
    return {
        "user": f"{account} : {label(_NAME)}",
        "administers": f"{check}.allowed()",
        "owner": _owner("object"),
        "before": _owner("oldObject"),
    }


def _owner(which: str) -> str:
    labels = f"{which}.metadata.labels"
    return f"{which} != null && has({labels}) && {_LABEL} in {labels} ? {labels}[{_LABEL}] : ''"


_OWN = (
    Rule(
        "oldObject == null || variables.administers || variables.before == variables.user",
        "'this is not yours: it belongs to ' + (variables.before == '' ? 'no user' : variables.before)",
    ),
    Rule(
        "object == null || variables.administers || variables.owner == variables.user",
        f"'what you make has to say that it is yours: label {OWNER}: ' + variables.user",
    ),
)


def _jobs(kind: JobKind, of_kind: Iterable[Rule]) -> Object:
    variables = {
        **user_variables(),
        # A deletion has no new object, and an expression about it would fail.
        "templates": f"object == null ? [] : ({templates(kind)})",
        "specs": "variables.templates.map(t, has(t.spec), t.spec)",
        "containers": "variables.specs.map(s, (has(s.containers) ? s.containers : []) + "
        "(has(s.initContainers) ? s.initContainers : []))",
        "volumes": "variables.specs.map(s, has(s.volumes) ? s.volumes : [])",
        "contexts": "variables.specs.map(s, ([s] + (has(s.containers) ? s.containers : []) + "
        "(has(s.initContainers) ? s.initContainers : [])).filter(x, has(x.securityContext)).map(x, x.securityContext))",
    }
    labelled = Rule(
        "variables.administers || variables.templates.all(t, has(t.metadata) && has(t.metadata.labels) && "
        f"{_LABEL} in t.metadata.labels && t.metadata.labels[{_LABEL}] == variables.user)",
        f"'pods of your job have to say that they are yours: label {OWNER}: ' + variables.user + "
        "' in the metadata of every pod template'",
    )
    name = f"pai-users-{kind.resource}" + (f".{kind.group}" if kind.group else "")
    rules = (*_OWN, labelled, _honest(), _warned(), *pod_rules(), *of_kind)
    return policy(name, requests(kind, *_ALL), rules, variables, OF_USERS)


def _honest() -> Rule:
    """Returns the rule that users stop jobs only in their own names, because the record keeps the name."""
    notes, key = "object.metadata.annotations", literal(STOPPED_BY)
    before = f"oldObject != null && has(oldObject.metadata.annotations) && {key} in oldObject.metadata.annotations"
    same = f"({before} && oldObject.metadata.annotations[{key}] == {notes}[{key}])"
    return Rule(
        f"object == null || !has({notes}) || !({key} in {notes}) || {notes}[{key}] == variables.user || {same}",
        f"'the annotation {STOPPED_BY} of what you stop is ' + variables.user",
    )


def _warned() -> Rule:
    """Returns the rule that only the recorder writes GPU warnings. Otherwise users could extend the grace period."""
    now, before = (
        f"({which} != null && has({which}.metadata.annotations) ? {which}.metadata.annotations[?{literal(WARNED)}]"
        ".orValue('') : '')"
        for which in ("object", "oldObject")
    )
    return Rule(
        f"object == null || {now} == {before}",
        f"'the annotation {WARNED} is for the recorder of jobs to write'",
    )


def _config_maps() -> Object:
    """Returns the policy on ConfigMaps: users change only their own, and write no job records."""
    kind = RequestKind("", "v1", "configmaps", _ALL)
    labels = "object.metadata.labels"
    genuine = Rule(
        f"object == null || !has({labels}) || !({literal(RECORD_LABEL)} in {labels})",
        f"'the label {RECORD_LABEL} is for what pai-install records of jobs'",
    )
    authority = Rule(
        f"object == null || object.metadata.name != {literal(_AUTHORITY)}",
        f"'the ConfigMap {_AUTHORITY} is for Kubernetes: pods trust it'",
    )
    return policy(
        "pai-users-configmaps",
        kind,
        (*_OWN, genuine, authority, no_finalizer(), *small_metadata(), small_data("data", "binaryData")),
        user_variables(),
        OF_USERS,
    )


def small_data(*fields: str) -> Rule:
    """The content of ConfigMaps and Secrets is in etcd, which all groups share."""
    sizes = (
        f"(has(object.{name}) ? object.{name}.map(key, size(key) + size(object.{name}[key])).sum() : 0)"
        for name in fields
    )
    return Rule(
        f"object == null || {' + '.join(sizes)} <= {MAX_DATA}",
        f"'ConfigMaps and Secrets of users have at most {MAX_DATA // 1024} KiB: use a storage for more'",
    )


def _secrets() -> Object:
    """By their names, which pods name, and not by a label."""
    kind = RequestKind("", "v1", "secrets", _ALL)
    which = "(object != null ? object : oldObject)"
    rules = (
        Rule(
            own_secret(f"{which}.metadata.name"),
            "variables.user.contains('.') ? 'users of a directory make no Secrets' : "
            "'the name of a Secret of yours begins with ' + variables.user + '.'",
        ),
        Rule(
            "object == null || !has(object.type) || object.type != 'kubernetes.io/service-account-token'",
            "'tokens of service accounts are for administrators to make'",
        ),
    )
    return policy(
        "pai-users-secrets",
        kind,
        (*rules, no_finalizer(), *small_metadata(), small_data("data")),
        user_variables(),
        OF_USERS,
    )
