"""Use cases of templates: list, find, save, publish, remove, and import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, FilePath

from pai_install.app.cluster_context import ClusterContext
from pai_install.cluster.client import ApiError, Select
from pai_install.documents.problem import text_lines
from pai_install.errors import ExitCode, PaiError, argument_error
from pai_install.jobs.marketplace import ImportedTemplate, TemplateDraft, read_drafts
from pai_install.jobs.read import read_job, read_job_text
from pai_install.jobs.template import (
    EXAMPLES,
    MAX_DESCRIPTION,
    MAX_FILE,
    JobTemplate,
    config_map_name,
    near_template_name,
    summary_of,
    tags_of,
    template_object,
    template_of,
    why_no_template_name,
)
from pai_install.kube.model import Ref
from pai_install.profile.model import ClusterProfile
from pai_install.schedulers.job_check import check_job
from pai_install.site.groups import TEMPLATE_LABEL, TEMPLATES_NAMESPACE
from pai_install.system.parameters import Parameter
from pai_install.users.directory import owner_of

# bytes of a file that is imported
MAX_IMPORT = 8 * 1024 * 1024
# of a namespace, in a list
MOST = 500
_MOST_SHOWN = 15
_MAPS = ("configmaps",)


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ListTemplates(_Request):
    """Selects templates."""

    groups: Annotated[tuple[str, ...], Parameter("--group", "GROUP", default="all groups")] = Field(
        default=(), description="Only templates of these groups, and published ones."
    )
    search: Annotated[str, Parameter(metavar="WORDS")] = Field(
        default="", description="Only templates with these words in name, description, or tags."
    )


class TemplateName(_Request):
    """Names a template."""

    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    group: Annotated[str, Parameter(metavar="GROUP")] = Field(
        default="", description="Group of the template. Without it, a published template."
    )


class _NewTemplate(_Request):
    group: Annotated[str, Parameter(metavar="GROUP")] = Field(description="Group with access to the template.")
    user: Annotated[str, Parameter(metavar="USER", default="the user of this host")] = Field(
        default="", description="Owner of the template."
    )


class SaveTemplate(_NewTemplate):
    """A job file, or a job of the cluster, that becomes a template."""

    name: Annotated[str, Parameter(positional=True, metavar="NAME")]
    file: Annotated[FilePath | None, Parameter(positional=True, metavar="[FILE]")] = None
    job: Annotated[str, Parameter(metavar="JOB")] = Field(
        default="", description="Job with the file of the template, instead of FILE."
    )
    description: Annotated[str, Parameter(metavar="TEXT")] = Field(
        default="", max_length=MAX_DESCRIPTION, description="Purpose of the template."
    )
    tags: Annotated[tuple[str, ...], Parameter("--tag", "WORD", split=True)] = Field(
        default=(), description="Tags for the search. Separate several with commas."
    )


class ImportTemplates(_NewTemplate):
    """Files that become templates."""

    files: Annotated[tuple[FilePath, ...], Parameter(positional=True, metavar="FILE...")]


def list_templates(app: ClusterContext, request: ListTemplates) -> tuple[JobTemplate, ...]:
    """The selected templates: those of groups in the order of groups, then published ones.

    Examples of pai-install that cannot run on the site are left out.
    """
    groups = request.groups or tuple(group.name for group in app.profile.groups)
    found = [one for one in _known(app, groups) if one.has(request.search)]
    impossible = _impossible(app, groups) if any(one.example for one in found) else frozenset()
    return tuple(one for one in found if not one.example or one.name not in impossible)


def find_template(app: ClusterContext, name: str, groups: Sequence[str]) -> JobTemplate:
    """The template of a name: the first one of the groups, else a published one. Raises PaiError."""
    spaces = [app.profile.require_group(group).namespace for group in groups]
    if not why_no_template_name(name):
        refs = [Ref("configmap", config_map_name(name), space) for space in (*spaces, TEMPLATES_NAMESPACE)]
        for item in app.cluster.get(refs):
            if item is not None and (found := template_of(item)) is not None and found.content:
                return found
    known = dict.fromkeys(one.name for one in _known(app, groups))
    raise PaiError(
        f"cannot find the template {name}",
        code="unknown-template",
        remedy=f"choose one of: {', '.join(list(known)[:_MOST_SHOWN])}" if known else "add one with job template save",
        exit_code=ExitCode.USAGE,
    )


def show_template(app: ClusterContext, request: TemplateName) -> JobTemplate:
    """The template of a name."""
    return find_template(app, request.name, (request.group,) if request.group else ())


def save_template(app: ClusterContext, request: SaveTemplate) -> JobTemplate:
    """Makes or replaces a template of the user. Raises PaiError for an invalid file, and for one of another user."""
    if (request.file is None) == (not request.job):
        raise argument_error(f"cannot save the template {request.name}: name a FILE or --job", "name one of the two")
    if request.file is not None:
        content = read_job(request.file).text
    else:
        # of the verbs of templates, one alone asks for jobs
        from pai_install.app.jobs import JobName, read_job_file  # noqa: PLC0415

        content = read_job_file(app, JobName(name=request.job, group=request.group))
    draft = TemplateDraft(request.name, content, request.description, tuple(tags_of(request.tags)))
    return keep_template(app, draft, request.group, request.user)


def keep_template(app: ClusterContext, draft: TemplateDraft, group: str, user: str = "") -> JobTemplate:
    """Makes or replaces a template. Raises PaiError as `save_template`."""
    namespace, owner = app.profile.require_group(group).namespace, owner_of(user or app.user)
    description = draft.description or summary_of(draft.content)
    template = JobTemplate(draft.title, namespace, owner, draft.content, description, draft.tags)
    _require_usable(template)
    (known,) = app.cluster.get([Ref("configmap", template.label, namespace)])
    before = template_of(known) if known is not None else None
    if before is not None and before.owner != owner:
        raise PaiError(
            f"cannot replace the template {template.name}: it belongs to {before.owner}",
            code="template-of-another",
            remedy="choose another name",
            exit_code=ExitCode.USAGE,
        )
    item = template_object(template)
    if known is None:
        app.cluster.dry_run([item], app.submitter(user or app.user))
    app.cluster.apply([item])
    return template


def publish_template(app: ClusterContext, request: TemplateName) -> JobTemplate:
    """Copies a template of a group to where all groups see it. The API server permits it to administrators."""
    if not request.group:
        raise argument_error(f"cannot publish {request.name}: its group is missing", "add --group GROUP")
    found = find_template(app, request.name, (request.group,))
    if found.published:
        raise argument_error(
            f"cannot publish {request.name}: {request.group} has no such template", "add it with job template save"
        )
    copy = replace(found, namespace=TEMPLATES_NAMESPACE)
    (known,) = app.cluster.get([Ref("configmap", copy.label, copy.namespace)])
    before = template_of(known) if known is not None else None
    if before is not None and before.example:
        raise argument_error(
            f"cannot publish {request.name}: an example of pai-install has this name", "choose another name"
        )
    app.cluster.apply([template_object(copy)])
    return copy


def remove_template(app: ClusterContext, request: TemplateName) -> JobTemplate:
    """Deletes a template. Jobs that were made with it stay. Raises PaiError for an example of pai-install."""
    found = show_template(app, request)
    if found.published and request.group:
        raise argument_error(
            f"cannot remove {request.name}: {request.group} has no such template",
            "leave out --group for the published one",
        )
    if found.example:
        raise argument_error(
            f"cannot remove {request.name}: it is an example of pai-install", "choose another template"
        )
    app.cluster.delete([Ref("configmap", found.label, found.namespace)])
    return found


def import_templates(app: ClusterContext, request: ImportTemplates) -> tuple[ImportedTemplate, ...]:
    """Saves each usable item of files: job files, and items of OpenPAI's marketplace in JSON. Others have a problem."""
    found: list[ImportedTemplate] = []
    for path in request.files:
        with path.open("rb") as file:
            content = file.read(MAX_IMPORT + 1)
        found += [_imported(app, draft, request) for draft in read_drafts(content, path.stem, MAX_IMPORT)]
    return tuple(found)


def _imported(app: ClusterContext, draft: TemplateDraft, request: ImportTemplates) -> ImportedTemplate:
    name = near_template_name(draft.title)
    if draft.problem or not name:
        return ImportedTemplate(name, draft.title, draft.problem or "it has no usable name")
    try:
        keep_template(app, replace(draft, title=name), request.group, request.user)
    except ApiError:
        raise
    except PaiError as error:
        return ImportedTemplate(name, draft.title, error.details.partition("\n")[0] or error.message)
    return ImportedTemplate(name, draft.title)


def _known(app: ClusterContext, groups: Sequence[str]) -> list[JobTemplate]:
    """Templates of groups, and published ones, without their files. Of each namespace at most MOST."""
    spaces = [*dict.fromkeys(app.profile.require_group(group).namespace for group in groups), TEMPLATES_NAMESPACE]
    found = app.cluster.list(*(Select(_MAPS, space, TEMPLATE_LABEL, outlines=True, most=MOST) for space in spaces))
    templates = (template_of(item) for items in found for item in items)
    return [one for one in templates if one is not None]


def _impossible(app: ClusterContext, groups: Sequence[str]) -> frozenset[str]:
    """The names of those examples of pai-install that no group may run on the site."""
    (found,) = app.cluster.list(Select(_MAPS, TEMPLATES_NAMESPACE, EXAMPLES, most=MOST))
    examples = [one for item in found if (one := template_of(item)) is not None]
    return frozenset(one.name for one in examples if not _runs(app.profile, one, groups))


def _runs(profile: ClusterProfile, template: JobTemplate, groups: Sequence[str]) -> bool:
    """Whether some group may run a template on the site."""
    reading = read_job_text(template.content, Path(template.name))
    return any(check_job(reading, profile, group).job is not None for group in groups or (None,))


def _require_usable(template: JobTemplate) -> None:
    """Raises PaiError for a name or a file that no template can have."""
    why, details = why_no_template_name(template.name), ""
    if not why and len(template.content.encode()) > MAX_FILE:
        why = f"its file has more than {MAX_FILE // 1024} KiB"
    if not why:
        reading = read_job_text(template.content, Path(template.name))
        if reading.job is None:
            why = "its file has errors"
            details = "\n".join(text_lines(problem for problem in reading.problems if problem.is_error))
    if why:
        raise PaiError(
            f"cannot save the template {template.name}: {why}",
            code="template-invalid",
            details=details,
            remedy="correct the name, or the file",
            exit_code=ExitCode.SITE_INVALID,
        )
