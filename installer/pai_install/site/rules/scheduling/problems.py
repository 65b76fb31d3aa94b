"""A problem of the sections about scheduling."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.documents.problem import Severity, YamlPath


@dataclass(frozen=True, slots=True)
class Wrong:
    """A problem at a path of services-configuration.yaml. code: without its "site." prefix."""

    path: YamlPath
    code: str
    message: str
    remedy: str = ""
    severity: Severity = "error"
