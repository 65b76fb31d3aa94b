"""Templates of jobs: cards with a search, a form that starts a job, and a new template."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.changed_file import changed_file
from pai_install.app.job_templates import (
    ListTemplates,
    TemplateName,
    find_template,
    keep_template,
    list_templates,
    publish_template,
    remove_template,
)
from pai_install.app.requested_job import require_secrets
from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, forbidden, invalid, rest_error
from pai_install.console.pages.endpoint import action, page, shown
from pai_install.console.pages.new_job import change_job, file_of_job
from pai_install.console.routes.job_changes import CallerContext
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import sent_to
from pai_install.errors import PaiError
from pai_install.jobs.marketplace import TemplateDraft
from pai_install.jobs.masking import has_mask
from pai_install.jobs.read import read_job_text
from pai_install.jobs.template import MAX_FILE, JobTemplate, parameters_of, tags_of

ADDRESS = "/templates"
_NAME = f"{ADDRESS}/{{name}}"
_PARAMETER = "p."
_MOST_CARDS = 200
# a form has each character of a file as up to three
_LARGEST = 3 * MAX_FILE + 64 * 1024


def show_templates(call: ApiCall) -> Response:
    """Cards of the templates that the caller sees."""
    search = call.query.get("search", "")[:200]
    found = _known(call, search)
    cards = [(one, _address(call, one)) for one in found[:_MOST_CARDS]]
    return shown(call, "templates.html", cards=cards, search=search, groups=call.caller.groups)


def show_template(call: ApiCall) -> Response:
    """One template, and the form that starts a job with it."""
    return _shown(call, _template(call), {})


def change_template(call: ApiCall, form: Mapping[str, str]) -> Response:
    """The button of the form: check or submit a job, continue with its file, publish, or remove."""
    template, wanted = _template(call), form.get("do", "")
    group = _group_of(call, template)
    if wanted == "publish":
        publish_template(CallerContext(call), TemplateName(name=template.name, group=group))
        return sent_to(f"{ADDRESS}/{quote(template.name)}")
    if wanted == "remove":
        remove_template(CallerContext(call), TemplateName(name=template.name, group=group))
        return sent_to(ADDRESS)
    settings = {key.removeprefix(_PARAMETER): value for key, value in form.items() if key.startswith(_PARAMETER)}
    usual = {one.name: one.value for one in parameters_of(template.content)}
    changed = {key: value for key, value in settings.items() if usual.get(key) != value}
    try:
        if wanted == "submit":
            require_secrets(template)
        reading = read_job_text(template.content, Path(template.name))
        reading = changed_file(reading, changed, form.get("name", "").strip(), form.get("cluster", ""))
    except PaiError as error:
        refused = rest_error(error)
        return _shown(call, template, form, refused)
    return change_job(call, {"content": reading.text, "do": wanted})


def new_template(call: ApiCall) -> Response:
    """An empty template, or one with the file of a job."""
    source = call.query.get("from", "")
    content = file_of_job(call, source) if source else ""
    return _form(call, {"content": content})


def save_template(call: ApiCall, form: Mapping[str, str]) -> Response:
    """Saves a template of the caller."""
    group = form.get("group", "")
    if group not in call.caller.groups:
        raise forbidden(f"{call.caller.label} is not in the group {group}")
    tags = tuple(tags_of(form.get("tags", "").split(",")))
    content = form.get("content", "").replace("\r\n", "\n")
    draft = TemplateDraft(form.get("title", "").strip(), content, form.get("description", "").strip(), tags)
    if not draft.title or not content:
        return _form(call, form, invalid("a template has a name and a job file"))
    try:
        saved = keep_template(CallerContext(call), draft, group, call.caller.label)
    except PaiError as error:
        return _form(call, form, rest_error(error), error.details)
    return sent_to(_address(call, saved))


def _known(call: ApiCall, search: str) -> tuple[JobTemplate, ...]:
    """The templates that the caller sees: without a group, the published ones."""
    groups = call.caller.groups
    request = ListTemplates(groups=groups, search=search)
    found = list_templates(CallerContext(call), request) if groups else ()
    return tuple(sorted(found, key=lambda one: (one.published, one.example, one.name)))


def _template(call: ApiCall) -> JobTemplate:
    """The template of the address, of a group of the caller or a published one. Raises RestError and PaiError."""
    group = call.query.get("group", "")
    if group and group not in call.caller.groups:
        raise forbidden(f"{call.caller.label} is not in the group {group}")
    return find_template(CallerContext(call), call.path["name"], (group,) if group else ())


def _group_of(call: ApiCall, template: JobTemplate) -> str:
    """The group of a template, or "" for a published one."""
    spaces = {one.namespace: one.name for one in call.services.model.profile.groups if one.name in call.caller.groups}
    return "" if template.published else spaces.get(template.namespace, "")


def _address(call: ApiCall, template: JobTemplate) -> str:
    group = _group_of(call, template)
    return f"{ADDRESS}/{quote(template.name)}" + (f"?{urlencode({'group': group})}" if group else "")


def _shown(call: ApiCall, template: JobTemplate, form: Mapping[str, str], refused: RestError | None = None) -> Response:
    reading = read_job_text(template.content, Path(template.name))
    scheduling = call.services.model.profile.require_scheduling()
    own, is_owner = set(call.caller.groups), template.owner == call.caller.label
    return shown(
        call,
        "template.html",
        refused.status if refused else 200,
        one=template,
        address=_address(call, template),
        parameters=[
            (one.name, form.get(f"{_PARAMETER}{one.name}", one.value)) for one in parameters_of(template.content)
        ],
        name=form.get("name", ""),
        openpai=reading.protocol in ("openpai-v1", "openpai-v2"),
        clusters=[one.name for one in scheduling.clusters if own & set(one.groups)],
        cluster=form.get("cluster", ""),
        masked=has_mask(template.content),
        problem=refused.message if refused else "",
        publishes=call.caller.admin and not template.published,
        removes=not template.example and (call.caller.admin if template.published else is_owner),
    )


def _form(call: ApiCall, form: Mapping[str, str], refused: RestError | None = None, details: str = "") -> Response:
    values = {name: form.get(name, "") for name in ("title", "description", "tags", "group", "content")}
    problem = "\n".join(filter(None, (refused.message, details))) if refused else ""
    return shown(
        call,
        "new_template.html",
        refused.status if refused else 200,
        groups=call.caller.groups,
        problem=problem,
        **values,
    )


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    return (
        Route(ADDRESS, page(show_templates), methods=["GET"]),
        action(services, ADDRESS, save_template, _LARGEST),
        Route(f"{ADDRESS}/new", page(new_template), methods=["GET"]),
        Route(_NAME, page(show_template), methods=["GET"]),
        action(services, _NAME, change_template, _LARGEST),
    )
