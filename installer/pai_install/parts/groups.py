"""Values of the add-ons groups and storages: namespaces of groups, and their rights and storages. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai_install.parts.context import Context
from pai_install.parts.example_templates import example_templates
from pai_install.registry.pull_secrets import accounts, pull_secrets
from pai_install.scheduling.admission import clusters_at, priorities_at
from pai_install.scheduling.device_shares import share_rules
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.read import scheduling_of
from pai_install.scheduling.unqueued import unqueued_objects, unqueued_rules
from pai_install.site import Site
from pai_install.site.directory import directory_of
from pai_install.site.groups import DEFAULT, groups_of
from pai_install.site.schedulers import scheduler_of
from pai_install.storage.compile import closed_claims, grants_of
from pai_install.storage.objects import closings, secrets, volumes
from pai_install.users.administration import administration_policies
from pai_install.users.directory import bindings
from pai_install.users.job_secrets import job_secrets
from pai_install.users.policies import policies
from pai_install.users.quotas import object_quotas
from pai_install.users.refused_pods import refused_pods
from pai_install.users.rights import roles, submitter_bindings
from pai_install.users.template_rights import template_rights


def has_groups(site: Site) -> bool:
    """Returns whether any group has a namespace, or objects in the default one."""
    return bool(groups_of(site.services))


def group_values(context: Context) -> dict[str, Any]:
    """Returns namespaces (of all groups without the default one) and credentials (of their registries).

    rights: permissions of users in these namespaces, and users of an identity provider. policies: of admission, which
    name the virtual clusters of each group. templates: the examples. quotas: of objects and of pods outside queues.
    """
    scheduler, groups = scheduler_of(context.site), groups_of(context.site.services)
    records = context.site.services.job_records.keep_per_group
    namespaces = {group.name: group.namespace for group in groups}
    directory_groups = [group for group in groups if directory_of(context.site.services)]
    submitters = submitter_bindings(dict.fromkeys(namespaces.values()))
    logins = context.registries.logins
    scheduling = scheduling_of(context.site)
    limited = scheduling, tuple(namespaces.values())
    return {
        # The default namespace is every cluster's own and is not created.
        "namespaces": [{"group": name, "name": it} for name, it in namespaces.items() if it != DEFAULT],
        "credentials": list(pull_secrets(logins, namespaces)),
        "accounts": list(accounts(logins, namespaces)),
        "rights": [
            *roles(scheduler),
            *administration_policies(namespaces),
            *job_secrets(scheduler, namespaces.values()),
            *submitters,
            *bindings(directory_groups),
            *template_rights(group.group.external_name for group in directory_groups),
        ],
        "policies": [
            *policies(
                scheduler,
                namespaces.values(),
                _clusters(scheduling),
                _priorities(scheduling),
                unqueued_rules(*limited),
                share_rules(scheduling),
            ),
            *refused_pods(context.components.kubernetes_version, namespaces.values()),
        ],
        "templates": list(example_templates()),
        "quotas": [*object_quotas(scheduler, namespaces.values(), records), *unqueued_objects(*limited)],
    }


def _clusters(scheduling: Scheduling | None) -> Mapping[str, Sequence[str]] | None:
    """Namespace -> names of the virtual clusters of its group."""
    if scheduling is None:
        return None
    return {place: [it.name for it in found] for place, found in clusters_at(scheduling).items()}


def _priorities(scheduling: Scheduling | None) -> Mapping[str, Sequence[str]]:
    """Namespace -> names of the priority classes that pods of its group may have."""
    return priorities_at(scheduling) if scheduling is not None else {}


def has_grants(site: Site) -> bool:
    """Whether any group is granted a storage of the site."""
    return bool(grants_of(site))


def storage_values(context: Context) -> dict[str, Any]:
    """Returns credentials of mounts, and volumes: PVs, PVCs, and admission policies that temporarily close claims to
    new pods.
    """
    grants = grants_of(context.site)
    closed = closings(closed_claims(context.site))
    return {"credentials": list(secrets(grants)), "volumes": [*volumes(grants), *closed]}
