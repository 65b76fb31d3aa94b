"""Values of add-ons that are more than a setting: `compiled` of addon.yml names one of these. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.parts.console import console_ports, console_values
from pai_install.parts.context import Context
from pai_install.parts.csi_drivers import driver_values, has_drivers
from pai_install.parts.docker_cache import cache_values
from pai_install.parts.dynamic_volumes import dynamic_volume_values, has_dynamic_volumes
from pai_install.parts.group_network import group_network_values, has_group_network
from pai_install.parts.groups import group_values, has_grants, has_groups, storage_values
from pai_install.parts.hived import has_hived, hived_values
from pai_install.parts.job_recorder import has_recorder, recorder_values
from pai_install.parts.logs import has_logs, log_values
from pai_install.parts.monitoring import has_monitoring, monitoring_ports, monitoring_values
from pai_install.parts.part import Port
from pai_install.parts.scheduling import (
    controller_values,
    has_jobsets,
    has_kueue,
    has_volcano,
    kueue_values,
    training_operator_values,
    volcano_values,
)
from pai_install.parts.virtual_clusters import has_virtual_clusters, virtual_cluster_values
from pai_install.registry.compile import wants_cache
from pai_install.site import Site
from pai_install.site.console import has_console
from pai_install.site.schedulers import has_training_operator


@dataclass(frozen=True, slots=True)
class Compiled:
    """wanted: whether a site is to have the add-on, beside its `when`. values: variable of its templates -> its value.

    names: the variables that `values` gives. ports: host ports of its pods that the site chooses.
    """

    wanted: Callable[[Site], bool]
    values: Callable[[Context], Mapping[str, Any]]
    names: frozenset[str]
    ports: Callable[[Site], tuple[Port, ...]] = lambda _: ()


COMPILED: Mapping[str, Compiled] = {
    "console": Compiled(
        has_console,
        console_values,
        frozenset(
            {
                *("objects", "passwords", "published", "settings", "authority", "secrets"),
                *("port", "http_port", "web_port", "legacy", "version"),
            },
        ),
        console_ports,
    ),
    "csi_drivers": Compiled(has_drivers, driver_values, frozenset({"others"})),
    "docker_cache": Compiled(
        wants_cache,
        cache_values,
        frozenset({"leader", "node_ports", "front_port", "folder", "registries", "digest"}),
    ),
    "dynamic_volumes": Compiled(has_dynamic_volumes, dynamic_volume_values, frozenset({"path", "reclaim_policy"})),
    "group_network": Compiled(has_group_network, group_network_values, frozenset()),
    "groups": Compiled(
        has_groups,
        group_values,
        frozenset({"namespaces", "credentials", "accounts", "rights", "policies", "templates", "quotas"}),
    ),
    "hived": Compiled(
        has_hived,
        hived_values,
        frozenset({"objects", "configuration_digest", "api_port", "open_port", "extender_port", "hived_port"}),
    ),
    "job_recorder": Compiled(has_recorder, recorder_values, frozenset({"objects"})),
    "jobset": Compiled(has_jobsets, controller_values, frozenset({"replicas", "api_port"})),
    "kueue": Compiled(
        has_kueue, kueue_values, frozenset({"replicas", "api_port", "pods_ready_timeout", "kubeflow", "metrics"})
    ),
    "logs": Compiled(
        has_logs,
        log_values,
        frozenset(
            {"leader", "folder", "buffer", "port", "collector_port", "days", "disk", "front", "server", "client"}
        ),
    ),
    "monitoring": Compiled(
        has_monitoring,
        monitoring_values,
        frozenset(
            {
                "replicas",
                "leader",
                "folder",
                "retention",
                "disk",
                "memory",
                "go_memory",
                "prometheus_port",
                "alertmanager_port",
                "state_port",
                "volcano",
                "state_arguments",
                "configuration",
                "routes",
                "identity",
                "receivers",
                "gossip",
            }
        ),
        monitoring_ports,
    ),
    "training_operator": Compiled(
        has_training_operator, training_operator_values, frozenset({"replicas", "api_port", "volcano"})
    ),
    "volcano": Compiled(
        has_volcano,
        volcano_values,
        frozenset({"replicas", "api_port", "devices", "certificate", "authorities", "admission"}),
    ),
    "storages": Compiled(has_grants, storage_values, frozenset({"credentials", "volumes"})),
    "virtual_clusters": Compiled(has_virtual_clusters, virtual_cluster_values, frozenset({"objects"})),
}
