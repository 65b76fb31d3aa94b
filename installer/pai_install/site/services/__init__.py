"""services-configuration.yaml: OpenPAI's sections and ours, typed."""

from __future__ import annotations

from pai_install.site.services.model import Services
from pai_install.site.services.read import read_services

__all__ = ["Services", "read_services"]
