"""Templates of jobs as a result and as text. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from pai_install.jobs.marketplace import ImportedTemplate
from pai_install.jobs.template import JobTemplate, parameters_of
from pai_install.json_schema import Report, ReportObject
from pai_install.report.table import table
from pai_install.system.plain import plain_text
from pai_install.system.words import clipped

_HEAD = ("NAME", "NAMESPACE", "OWNER", "TAGS", "DESCRIPTION")
_LONGEST = 80


class TemplateEntry(ReportObject):
    """A template."""

    name: str
    namespace: str = Field(description="Of its group. pai-templates: published, so that all groups see it.")
    owner: str = Field(description="Empty: an example of pai-install.")
    published: bool
    description: str
    tags: tuple[str, ...]


class TemplatesReport(Report, title="pai-install job template list"):
    """Templates of groups, and published ones."""

    templates: tuple[TemplateEntry, ...]


class ParameterEntry(ReportObject):
    """A value that --set replaces."""

    name: str
    value: str = Field(description="Default.")


class TemplateReport(Report, TemplateEntry, title="pai-install job template show"):
    """A template with its file."""

    parameters: tuple[ParameterEntry, ...]
    content: str = Field(description="The job file, with secrets masked.")


class ImportEntry(ReportObject):
    """An item of a file."""

    name: str = Field(description="Of the template. Empty: the item has no usable name.")
    title: str = Field(description="Name of the item in its file.")
    problem: str = Field(description="Why it is no template. Empty: it is one.")


class ImportReport(Report, title="pai-install job template import"):
    """The outcome for each item."""

    items: tuple[ImportEntry, ...]


def templates_report(found: Sequence[JobTemplate]) -> TemplatesReport:
    """The report of templates."""
    return TemplatesReport(templates=tuple(map(TemplateEntry.model_validate, found)))


def templates_text(found: Sequence[JobTemplate]) -> str:
    """A line for each template."""
    if not found:
        return "no templates\n"
    return table([_HEAD, *map(_line, found)])


def _line(one: JobTemplate) -> tuple[str, ...]:
    description = plain_text(one.description.partition("\n")[0])
    short = clipped(description, _LONGEST)
    return one.name, one.namespace, one.owner or "pai-install", plain_text(", ".join(one.tags)), short


def template_report(found: JobTemplate) -> TemplateReport:
    """The report of one template."""
    parameters = tuple(map(ParameterEntry.model_validate, parameters_of(found.content)))
    entry = TemplateEntry.model_validate(found)
    return TemplateReport(**entry.model_dump(), parameters=parameters, content=found.content)


def template_text(report: TemplateReport) -> str:
    """Description, parameters, and the file."""
    of = f" of {report.owner}" if report.owner else ""
    lines = [f"{report.name}{of}, in {report.namespace}", *(f"  {one}" for one in report.description.splitlines())]
    if report.tags:
        lines.append(f"  tags: {', '.join(report.tags)}")
    lines += [f"  --set {one.name}={one.value}" for one in report.parameters]
    content = report.content if report.content.endswith("\n") else f"{report.content}\n"
    return plain_text("".join(f"{line}\n" for line in lines) + f"\n{content}")


def import_report(found: Sequence[ImportedTemplate]) -> ImportReport:
    """The report of an import."""
    return ImportReport(items=tuple(map(ImportEntry.model_validate, found)))


def import_text(report: ImportReport) -> str:
    """A line for each item."""
    rows = [(one.name or "-", one.problem or "saved", one.title) for one in report.items]
    return plain_text(table([("NAME", "OUTCOME", "ITEM"), *rows])) if rows else "no items\n"
