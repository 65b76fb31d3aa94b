"""A document -> its sections, with every problem at its place."""

from __future__ import annotations

from pai_install.documents.document import Document
from pai_install.documents.validate import validate
from pai_install.site.services.model import Services


def read_services(document: Document) -> Services:
    """Returns the sections of services-configuration.yaml, or none of them for a file with errors, which are added."""
    found = validate(Services, document)
    return Services() if found is None else found
