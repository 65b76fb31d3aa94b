"""The add-on hived on a control plane without machines."""

from __future__ import annotations

import yaml

from pai_install.schedulers.compile import objects_of
from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api, Json, path_of, running
from tests.integration.hived.pods import SITE, TEAMS

__all__ = ["Api", "Json", "apply_addon", "path_of", "running"]

ADDON = ROOT / "addons/hived"


def apply_addon(api: Api) -> None:
    """The namespaces of two teams, and every object of the add-on hived as the API server takes it."""
    for namespace in TEAMS:
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    given = yaml.safe_load((ADDON / "tests/plain.input.yml").read_text())["values"]
    for entry in addon_action().objects_of(ADDON, {**given, "objects": list(objects_of(SITE))}, ()):
        api.apply(entry)
