"""Reads YAML files to one frozen Site. Every problem has file:line:column."""

from __future__ import annotations

from pai_install.documents.problem import Problem, SiteInvalid
from pai_install.site.load import LoadedSite, load_site
from pai_install.site.model import Device, Machine, Site, Sku, Ssh
from pai_install.site.settings import Settings

__all__ = [
    "Device",
    "LoadedSite",
    "Machine",
    "Problem",
    "Settings",
    "Site",
    "SiteInvalid",
    "Sku",
    "Ssh",
    "load_site",
]
