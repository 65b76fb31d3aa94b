"""Templates: job files with parameters, as ConfigMaps of the cluster and back. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_install.documents.document import Document, Entries, Text
from pai_install.documents.parse import parse_document
from pai_install.jobs.masking import masked
from pai_install.kube.objects import JsonObject, child, text, words
from pai_install.site.groups import TEMPLATE_LABEL, TEMPLATES_NAMESPACE, USER_LABEL

# bytes of a file: with the rest of the object it is below the limit of users' ConfigMaps
MAX_FILE = 100 * 1024
MAX_NAME, MAX_DESCRIPTION, MAX_TAGS, MAX_TAG = 53, 4_000, 20, 40
MAX_PARAMETERS = 100
# annotations, so that a list needs no files
_DESCRIPTION, _TAGS = "pai-install/template-description", "pai-install/template-tags"
# values of the label
_OWN, _EXAMPLE = "yes", "example"
# selects the examples of pai-install
EXAMPLES = f"{TEMPLATE_LABEL}={_EXAMPLE}"
_PREFIX = "template."
_NAME = re.compile("[a-z0-9]([a-z0-9-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """A value that a user of a template may set. value: the default."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """A job file with a name. It has no secrets.

    namespace: of its group, or TEMPLATES_NAMESPACE. owner: "" for an example of pai-install.
    """

    name: str
    namespace: str
    owner: str
    content: str
    description: str = ""
    tags: tuple[str, ...] = ()
    example: bool = False

    @property
    def published(self) -> bool:
        """Whether all groups see it."""
        return self.namespace == TEMPLATES_NAMESPACE

    @property
    def label(self) -> str:
        """The name of its ConfigMap."""
        return config_map_name(self.name)

    def has(self, words_: str) -> bool:
        """Whether each word is in its name, description, or tags."""
        where = " ".join((self.name, self.description, *self.tags)).lower()
        return all(word in where for word in words_.lower().split())


def config_map_name(name: str) -> str:
    """The name of the ConfigMap of a template."""
    return f"{_PREFIX}{name}"


def why_no_template_name(name: str) -> str:
    """Returns the reason why a template cannot have the name, or ""."""
    if len(name) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters"
    return "" if _NAME.fullmatch(name) else "a name has lower-case letters, digits, and '-' between them"


def near_template_name(word: str) -> str:
    """The most similar name, or ""."""
    return re.sub("[^a-z0-9]+", "-", word.lower()).strip("-")[:MAX_NAME].strip("-")


def template_object(template: JobTemplate) -> dict[str, Any]:
    """The ConfigMap of a template. Secrets of its file are masked."""
    labels = {TEMPLATE_LABEL: _EXAMPLE if template.example else _OWN}
    if template.owner:
        labels[USER_LABEL] = template.owner
    notes = {_DESCRIPTION: template.description, _TAGS: "\n".join(template.tags)}
    metadata = {"name": template.label, "namespace": template.namespace, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "annotations": {key: value for key, value in notes.items() if value}},
        "data": {"job": masked(template.content)},
    }


def template_of(item: JsonObject) -> JobTemplate | None:
    """The template of a ConfigMap, or None for another one. Anybody in the group may have written it.

    The template of an outline has no content.
    """
    metadata = child(item, "metadata")
    labels, notes = words(child(metadata, "labels")), words(child(metadata, "annotations"))
    name = text(metadata.get("name"))
    short, content = name.removeprefix(_PREFIX), words(child(item, "data")).get("job", "")
    if TEMPLATE_LABEL not in labels or short == name or why_no_template_name(short):
        return None
    namespace = text(metadata.get("namespace"))
    return JobTemplate(
        short,
        namespace,
        labels.get(USER_LABEL, ""),
        content[:MAX_FILE],
        notes.get(_DESCRIPTION, "")[:MAX_DESCRIPTION],
        tuple(tags_of(notes.get(_TAGS, "").split("\n"))),
        # A member could put the label of examples on a template of their own.
        example=labels[TEMPLATE_LABEL] == _EXAMPLE and namespace == TEMPLATES_NAMESPACE,
    )


def tags_of(found: object) -> Iterator[str]:
    """The usable tags of a list, each once."""
    known: set[str] = set()
    for one in found if isinstance(found, list | tuple) else ():
        tag = " ".join(one.split())[:MAX_TAG] if isinstance(one, str) else ""
        if tag and tag not in known and len(known) < MAX_TAGS:
            known.add(tag)
            yield tag


def summary_of(content: str) -> str:
    """What a job file says of itself: its first comment, or OpenPAI's description."""
    first = content.partition("\n")[0]
    if first.startswith("#"):
        return first.lstrip("# ").rstrip(". ")[:MAX_DESCRIPTION]
    document = Document("", of="job")
    parse_document(content, document)
    found = document.content.get("description")
    return str(found)[:MAX_DESCRIPTION] if isinstance(found, Text) else ""


def parameters_of(content: str) -> tuple[TemplateParameter, ...]:
    """The parameters of a job file: those of OpenPAI's protocol 2 that have one value."""
    document = Document("", of="job")
    parse_document(content, document)
    found = document.content.get("parameters")
    if "protocolVersion" not in document.content or not isinstance(found, Entries):
        return ()
    return tuple(_parameters(found))[:MAX_PARAMETERS]


def _parameters(found: Mapping[str, object]) -> Iterator[TemplateParameter]:
    for name, value in found.items():
        if value is None or isinstance(value, Text):
            yield TemplateParameter(name, "" if value is None else str(value))
