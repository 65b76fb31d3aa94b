"""Edits submitters and limits of virtual clusters in the text of services-configuration.yaml. Pure."""

from __future__ import annotations

from pai_install.documents.problem import YamlPath
from pai_install.site_edit.items import with_item
from pai_install.site_edit.sections import with_sections
from pai_install.site_edit.spans import read_spans
from pai_install.site_edit.values import with_value

_ACLS: YamlPath = ("extension", "acls", "virtualClusters")
_MARK = "\ufeff"


def admitted(text: str, group: YamlPath, cluster: str) -> str:
    """With the virtual cluster in the acls of the group that stands at `group`. Raises EditError."""
    return _marked(text, with_item(text.removeprefix(_MARK), (*group, *_ACLS), cluster))


def kept_by(text: str, scheduler: str) -> str:
    """With the scheduler in the section scheduler, which is made where it is missing. Raises EditError."""
    bare = text.removeprefix(_MARK)
    root = read_spans(bare) if bare.strip() else None
    if root is None or root.number("scheduler") is None:
        return with_sections(text, f"scheduler:\n  type: {scheduler}\n")
    return _marked(text, with_value(text.removeprefix(_MARK), ("scheduler",), "type", scheduler))


def _marked(before: str, made: str) -> str:
    """With the byte order mark that the file had."""
    return _MARK + made if before.startswith(_MARK) else made
