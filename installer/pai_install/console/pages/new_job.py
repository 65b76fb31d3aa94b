"""A new job: a form with its file, or a file, what will happen, and the submission. It works without scripts.

A script sends the same form while a person types, and shows parts of the page that answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from pai_install.app.code_storage import storage_for_code, store_code
from pai_install.app.code_upload import MAX_UPLOAD, kept_code, read_archive
from pai_install.app.job_manifest import JobSubmission
from pai_install.app.job_preview import JobPreview, preview_job
from pai_install.app.job_submission import submit_reading
from pai_install.app.requested_job import JobOptions, with_code
from pai_install.console.code_transfer import CodePort
from pai_install.console.endpoint import ApiCall
from pai_install.console.errors import RestError, invalid, rest_error
from pai_install.console.job_access import find_job
from pai_install.console.openpai.storage import storages_of
from pai_install.console.pages.endpoint import action, page, shown
from pai_install.console.pages.job_form import MOST_ROLES, JobForm
from pai_install.console.pages.waiting import holder_rows
from pai_install.console.routes.job_changes import MAX_FILE, CallerContext, group_for
from pai_install.console.routes.jobs import kept_file
from pai_install.console.services import ConsoleServices
from pai_install.console.sign_in.forms import sent_to
from pai_install.documents.problem import Problem
from pai_install.errors import PaiError
from pai_install.jobs.code import CodeArchive, StoredCode
from pai_install.jobs.code_archive import PackedCode
from pai_install.jobs.masking import has_mask
from pai_install.jobs.read import JobReading, read_job_text
from pai_install.jobs.state import JobState
from pai_install.scheduling.model import PRIORITIES

# a form has each character of a file as up to three, or an archive with it
_LARGEST = MAX_UPLOAD + 3 * MAX_FILE + 64 * 1024
_FILE = Path("job.yaml")
# characters of a file that is checked while it is typed: a larger one takes long
MOST_TYPED = 64 * 1024
ADDRESS = "/jobs/new"


@dataclass(frozen=True, slots=True)
class JobDraft:
    """A job that is not submitted. content: of the file, None in the form. code_of: USER~NAME of a job with code.

    keeps_code: whether it has the code of that job.
    """

    form: JobForm
    content: str | None = None
    code_of: str = ""
    keeps_code: bool = True


def new_job(call: ApiCall) -> Response:
    """An empty form or file, or the file of an existing job."""
    source = call.query.get("from", "")
    if source:
        content = file_of_job(call, source)
        had_code = bool(_job_of(call, source).code)
        return _shown(call, JobDraft(JobForm(), content, code_of=source if had_code else ""))
    return _shown(
        call, JobDraft(JobForm(cluster=call.query.get("vc", "")), "" if call.query.get("as") == "file" else None)
    )


def file_of_job(call: ApiCall, name: str) -> str:
    """The file of an existing job, USER~NAME, with masked secrets. "" without one. Raises RestError."""
    return kept_file(replace(call, path={"name": name})) or ""


def change_job(call: ApiCall, form: Mapping[str, str]) -> Response:
    """The button of the form: check, submit, one role more or less, or the form as a file. typed: of the script."""
    wanted, draft = form.get("do", ""), _draft(form)
    if wanted == "add-role":
        return _shown(call, replace(draft, form=draft.form.with_role()))
    if wanted.startswith("remove-"):
        return _shown(call, replace(draft, form=draft.form.without_role(wanted.removeprefix("remove-"))))
    profile = call.services.model.profile
    content = draft.form.text(profile) if draft.content is None else draft.content
    if wanted == "to-file":
        return _shown(call, replace(draft, content=content))
    if len(content) > MAX_FILE:
        raise invalid(f"the job file exceeds {MAX_FILE} characters")
    if wanted == "typed" and len(content) > MOST_TYPED:
        raise invalid(f"a job file of more than {MOST_TYPED} characters is not checked while you type")
    call.services.rates.take("typed" if wanted == "typed" else "submit", call.caller.name)
    try:
        reading = read_job_text(content, _FILE)
        group = group_for(call, reading)
        packed = read_archive(call.body) if call.body else None
        code = _kept(call, draft) if packed is None else packed.small or packed.on(_storage(call, group))
        reading = with_code(reading, code)
        if wanted == "submit":
            return _submitted(call, reading, group, packed, code)
        return _shown(call, draft, _preview(call, reading, group))
    except RestError as error:
        refused = error
    except PaiError as error:
        refused = rest_error(error)
    return _shown(call, draft, JobPreview((), refused.message, ()), status=refused.status)


def _draft(form: Mapping[str, str]) -> JobDraft:
    content = form.get("content")
    return JobDraft(
        JobForm.read(form),
        content.replace("\r\n", "\n") if content is not None else None,
        form.get("code-of", ""),
        "keep-code" in form,
    )


def _storage(call: ApiCall, group: str) -> str:
    """The storage of a group for code. Raises PaiError."""
    profile = call.services.model.profile
    profile.require_group(group)
    return storage_for_code(profile, group)


def _kept(call: ApiCall, draft: JobDraft) -> CodeArchive | StoredCode | None:
    """The code of the job that the draft comes from. Raises PaiError and RestError."""
    return kept_code(call.client, _job_of(call, draft.code_of)) if draft.code_of and draft.keeps_code else None


def _job_of(call: ApiCall, name: str) -> JobState:
    """A job of the caller's groups, USER~NAME. Raises RestError."""
    return find_job(replace(call, path={"name": name})).job


def _preview(call: ApiCall, reading: JobReading, group: str) -> JobPreview:
    model, request = call.services.model, JobOptions(group=group, user=call.caller.label)
    return preview_job(CallerContext(call), request, reading, model.usage(), model.counted_jobs())


def _submitted(
    call: ApiCall,
    reading: JobReading,
    group: str,
    packed: PackedCode | None,
    code: CodeArchive | StoredCode | None,
) -> Response:
    """Submits, and goes to the page of the job. A large archive is on its storage before."""
    context, settings = CallerContext(call), call.services.settings.code

    def store(submission: JobSubmission) -> None:
        if packed is None or not isinstance(code, StoredCode):
            return
        if settings is None:
            raise invalid("this console stores no code above 1 MiB")
        place = submission.jobs[0].place
        jobs = call.services.model.jobs.of_namespace(place.owner.namespace)
        transfer = CodePort(call.client, settings.image, settings.network)
        store_code(context, packed, code, place, transfer, jobs)

    options = JobOptions(group=group, user=call.caller.label)
    submission = submit_reading(context, options, reading, store)
    name = f"{call.caller.label}~{submission.jobs[0].name}"
    return sent_to(f"/jobs/{quote(name, safe='~')}" if len(submission.jobs) == 1 else "/jobs")


def _shown(
    call: ApiCall,
    draft: JobDraft,
    preview: JobPreview | None = None,
    status: int = 200,
) -> Response:
    answers = []
    for one in preview.answers if preview is not None else ():
        rows, hidden, more = holder_rows(call, one.holders)
        answers.append((one, rows, hidden, more))
    file = draft.content if draft.content is not None else draft.form.text(call.services.model.profile)
    found = preview.problems if preview is not None else ()
    return shown(
        call,
        "new_job.html",
        status,
        draft=draft,
        file=file,
        masked=has_mask(file),
        coded=bool(call.body),
        preview=preview,
        answers=answers,
        at_fields=_at_fields(draft, found),
        errors=sum(one.is_error for one in found),
        typed=MOST_TYPED,
        may_add=len(draft.form.roles) < MOST_ROLES,
        **_choices(call),
    )


def _at_fields(draft: JobDraft, problems: Iterable[Problem]) -> dict[str, str]:
    """Field -> what is wrong with it. A file has one field."""
    found: dict[str, str] = {}
    for one in problems if draft.content is None else ():
        words = f"{one.message}. {one.remedy}" if one.remedy else one.message
        field = draft.form.field_of(one.path)
        found[field] = f"{found[field]}\n{words}" if field in found else words
    return found


def _choices(call: ApiCall) -> dict[str, Any]:
    """What the caller may choose."""
    profile, own = call.services.model.profile, set(call.caller.groups)
    scheduling = profile.require_scheduling()
    return {
        "groups": call.caller.groups,
        "clusters": [one.name for one in scheduling.clusters if own & set(one.groups)],
        "skus": list(scheduling.supply),
        "priorities": list(PRIORITIES),
        "storages": [one.name for one in storages_of(profile, call.caller.groups)],
    }


def routes(services: ConsoleServices) -> tuple[Route, ...]:
    """All routes."""
    return (
        Route(ADDRESS, page(new_job), methods=["GET"]),
        action(services, ADDRESS, change_job, _LARGEST),
    )
