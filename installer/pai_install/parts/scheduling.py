"""Values of the add-ons of schedulers: which one the site has, and how its controllers run. Pure."""

from __future__ import annotations

from typing import Any

from pai_install.parts.context import Context
from pai_install.ports import API_SERVER_PORT
from pai_install.scheduling.job_kinds import JOBSET, KINDS
from pai_install.site import Site
from pai_install.site.schedulers import has_training_operator, scheduler_of
from pai_install.site.workers import workers_of

# How long the pods of a job that was admitted may take until all are ready; then the whole job goes back to its queue.
PODS_READY_TIMEOUT = "5m"
# what Kueue calls the kinds that the training-operator runs
JOBS_OF_OPERATOR = tuple(kind.name.lower() for kind in KINDS if kind.operated and kind.queued)


def has_jobsets(site: Site) -> bool:
    """Whether jobs are JobSets here: with every scheduler but Volcano, which has a kind of its own."""
    return scheduler_of(site) in JOBSET.brought


def has_kueue(site: Site) -> bool:
    """Whether Kueue is the site's scheduler of jobs."""
    return scheduler_of(site) == "kueue"


def has_volcano(site: Site) -> bool:
    """Whether Volcano is the site's scheduler of jobs."""
    return scheduler_of(site) == "volcano"


def controller_values(context: Context) -> dict[str, Any]:
    """replicas: one stands by where another machine can hold it. api_port: the API server's, all that pods reach."""
    return {"replicas": min(len(context.site.control_planes), 2), "api_port": API_SERVER_PORT}


def kueue_values(context: Context) -> dict[str, Any]:
    """Those of its controller, pods_ready_timeout as Kubernetes writes durations, and the kinds of Kubeflow's jobs.

    metrics: whether Prometheus reads it.
    """
    operated = JOBS_OF_OPERATOR if has_training_operator(context.site) else ()
    return {
        **controller_values(context),
        "pods_ready_timeout": PODS_READY_TIMEOUT,
        "kubeflow": list(operated),
        "metrics": context.site.services.monitoring is not None,
    }


def training_operator_values(context: Context) -> dict[str, Any]:
    """Returns the values of its controller. volcano: Volcano places the gangs."""
    return {**controller_values(context), "volcano": has_volcano(context.site)}


def volcano_values(context: Context) -> dict[str, Any]:
    """Returns the values of its controllers, the packed resources, and the PEM identity of its admission webhook.

    certificate, authorities: empty before the site has an identity.
    """
    identity, resources = context.identity, [it.resource for it in workers_of(context.site).values()]
    values = {**controller_values(context), "devices": list(dict.fromkeys(filter(None, resources)))}
    webhook = identity.webhook if identity is not None else None
    if identity is None or webhook is None:
        return {**values, "certificate": "", "authorities": "", "admission": {"secret_data": {}}}
    chain = {"tls.crt": webhook.certificate, "tls.key": webhook.key.get_secret_value(), "ca.crt": identity.bundle}
    return {
        **values,
        "certificate": webhook.certificate,
        "authorities": identity.bundle,
        "admission": {"secret_data": chain},
    }
