"""The job that an address means, as its caller may see it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from pai_install.cluster.client import ApiError, ClusterClient
from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError
from pai_install.console.model.view import JobView
from pai_install.console.openpai.job import by_name
from pai_install.jobs.directory import JobDirectory
from pai_install.jobs.history import stopped
from pai_install.jobs.names import kubernetes_name
from pai_install.jobs.state import JobState, states_of
from pai_install.kube.model import Ref
from pai_install.kube.objects import JsonObject

_MOST_NAME = 320
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def no_job(name: str) -> RestError:
    """An unknown or invisible job."""
    return RestError(HTTPStatus.NOT_FOUND, "NoJobError", f"job {name[:_MOST_NAME]} is not found")


def named(call: ApiCall) -> tuple[str, str]:
    """User and name in an address: USER~NAME, or both apart. Raises RestError."""
    if "user" in call.path:
        return call.path["user"], call.path["job"]
    user, mark, name = call.path["name"].partition("~")
    if not mark or not user or not name or len(call.path["name"]) > _MOST_NAME:
        raise no_job(call.path["name"])
    return user, name


def find_job(call: ApiCall) -> JobView:
    """The job of the model that an address means, or a job that the model does not have yet. Raises RestError."""
    user, name = named(call)
    model = call.services.model
    found = {view.job.uid: view for view in model.jobs.find(user, name, model.visible(call.caller))}
    job = by_name(view.job for view in found.values())
    if job is not None:
        return found[job.uid]
    # Clients of OpenPAI ask for a job right after its submission, before a watch has told of it.
    new = _just_made(call, user, name)
    if new is None:
        raise no_job(f"{user}~{name}")
    return JobView.of(new)


def read_job_now(call: ApiCall) -> JobState:
    """The job that an address means, read as the caller. Raises RestError and ApiError."""
    job = find_job(call).job
    if job.gone:
        return job
    return directory(call).look(job, call.services.model.jobs.status_of(job)) or stopped(job)


def directory(call: ApiCall, client: ClusterClient | None = None) -> JobDirectory:
    """The jobs of the cluster, as the caller sees them."""
    model = call.services.model
    return JobDirectory(model.profile, model.kinds, "", client or call.client)


@contextmanager
def _absent_is_none() -> Iterator[None]:
    """Goes on where the cluster lacks a kind, or the caller may not read it."""
    try:
        yield
    except ApiError as error:
        if error.reason not in {"NoSuchKind", "Forbidden"}:
            raise


def _just_made(call: ApiCall, user: str, name: str) -> JobState | None:
    """A job of the caller that no watch has told yet."""
    if user != call.caller.label:
        return None
    model, own = call.services.model, set(call.caller.groups)
    spaces = [group.namespace for group in model.profile.groups if group.name in own]
    # the API server refuses other names as a wrong request, and not as an unknown object
    labels = [label for label in dict.fromkeys((kubernetes_name(name), name)) if _LABEL.fullmatch(label)]
    found: list[JsonObject | None] = []
    for kind in model.kinds:
        with _absent_is_none():
            found += call.client.get([Ref(kind.full_name, label, space) for space in spaces for label in labels])
    objects = [item for item in found if item is not None]
    return by_name(job for job in states_of(objects, (), ()) if job.user == user and name in {job.name, job.label})
