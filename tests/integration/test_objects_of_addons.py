"""The objects of add-ons before a real API server, which knows each of their fields."""

from __future__ import annotations

import pytest
import yaml

from tests.addons import ROOT
from tests.integration.control_plane import Api, path_of


@pytest.mark.parametrize("case", ["logs/tests/plain", "monitoring/tests/two_stores"])
def test_the_api_server_takes_every_field(api: Api, case: str) -> None:
    found = list(yaml.safe_load_all((ROOT / f"addons/{case}.expected.yml").read_text()))
    for entry in sorted(found, key=lambda it: it["kind"] != "Namespace"):
        query = "fieldManager=pai-install&force=true&fieldValidation=Strict"
        path = f"{path_of(entry)}/{entry['metadata']['name']}?{query}"
        api.ask("PATCH", path, entry, "application/apply-patch+yaml")
