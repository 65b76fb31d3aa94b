"""Action of pai_addons: fills the templates of add-ons on the controller host and gives the module their objects.

Values are data here: they are never templates themselves, and each is written into YAML as JSON, so that no value
can become anything but itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import runpy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from jinja2 import FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

ADDONS = Path(__file__).parents[2] / "addons"
FILTERS = runpy.run_path(str(Path(__file__).parents[1] / "filter_plugins" / "pai_agents.py"))
LABELS = {"app.kubernetes.io/managed-by": "pai-install"}

# the definitions of some kinds are megabytes: the loader in C reads them in a tenth of the time
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]


class AddonError(Exception):
    """An add-on that cannot be rendered."""


def objects_of(folder: Path, values: dict[str, Any], manifests: Iterable[str] = ()) -> list[Object]:
    """The objects of an add-on: upstream manifests (YAML texts) with its patches, compiled objects, its own templates.

    values: `objects` are the compiled objects, the others fill the templates.
    Raises AddonError, naming the file, for a value that is missing or a patch that fits no object.
    """
    upstream = [entry for text in manifests for entry in _documents(text, "an upstream manifest")]
    for patch in _rendered(folder / "patches", values):
        upstream = patched(upstream, patch)
    # read from text like the others: values of Ansible carry marks that modules must not get
    compiled = [entry for it in values.get("objects", ()) for entry in _documents(_as_json(it), "a compiled object")]
    found = [*upstream, *compiled, *_rendered(folder / "objects", values)]
    return [_labelled(entry, folder.name) for entry in found]


def patched(objects: list[Object], patch: Object) -> list[Object]:
    """Objects with one of them changed: maps are merged, lists of named entries by their name, all else replaced.

    A patch with `$patch: delete` takes its object away.
    """
    index = next((number for number, entry in enumerate(objects) if _same(entry, patch)), None)
    if index is None:
        # A new upstream version may rename its objects. A patch without effect would weaken the cluster silently.
        raise AddonError(f"a patch is for {_name(patch)}, which no manifest has")
    if patch.get("$patch") == "delete":
        return [*objects[:index], *objects[index + 1 :]]
    return [*objects[:index], merged(objects[index], patch), *objects[index + 1 :]]


def merged(base: Any, patch: Any) -> Any:
    """Returns `base` with `patch` merged. null deletes a key."""
    if isinstance(base, dict) and isinstance(patch, dict):
        found = {key: value for key, value in base.items() if patch.get(key, value) is not None}
        return {**found, **{key: merged(base.get(key), value) for key, value in patch.items() if value is not None}}
    if _named(base) and _named(patch):
        entries = {entry["name"]: entry for entry in base}
        return list({**entries, **{it["name"]: merged(entries.get(it["name"]), it) for it in patch}}.values())
    return patch


def _named(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(it, dict) and "name" in it for it in value)


def _same(entry: Object, patch: Object) -> bool:
    return all(entry.get(key) == patch.get(key) for key in ("apiVersion", "kind")) and _name(entry) == _name(patch)


def _name(entry: Object) -> str:
    metadata = entry.get("metadata", {})
    return f"{entry.get('kind')} {metadata.get('namespace', '')}/{metadata.get('name')}"


def _labelled(entry: Object, addon: str) -> Object:
    metadata = entry["metadata"]
    labels = {**metadata.get("labels", {}), **LABELS, "pai-install/addon": addon}
    return {**entry, "metadata": {**metadata, "labels": labels}}


def _rendered(folder: Path, values: dict[str, Any]) -> list[Object]:
    # A plain environment would let a template reach Python's internals through its values.
    environment = SandboxedEnvironment(
        loader=FileSystemLoader([folder, folder.parents[1]]),  # shared/NAME is beside the add-ons
        # A missing value would otherwise be an empty text, and the object valid but wrong.
        undefined=StrictUndefined,
        # JSON is YAML in which a value cannot end its line or become a key.
        finalize=_as_json,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters["to_json"] = lambda value: json.dumps(value, sort_keys=True)
    environment.filters["to_digest"] = lambda value: hashlib.sha256(value.encode()).hexdigest()[:16]
    environment.filters["to_base64"] = lambda value: base64.b64encode(value.encode()).decode()
    environment.globals["file"] = lambda name: (folder.parent / "files" / name).read_text(encoding="utf-8")
    environment.filters["agent_files"] = FILTERS["agent_files"]
    found: list[Object] = []
    for path in sorted(folder.glob("*.yaml.j2")):
        try:
            found += _documents(environment.get_template(path.name).render(values), path.name)
        except (TemplateError, OSError) as error:
            raise AddonError(f"{path.name} of add-on {folder.parent.name}: {error}") from error
    return found


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str)  # the text of a value that is missing is its error


def _documents(text: str, source: str) -> list[Object]:
    try:
        documents = [entry for entry in yaml.load_all(text, Loader=LOADER) if entry]
    except yaml.YAMLError as error:
        raise AddonError(f"{source}: {error}") from error
    for entry in documents:
        if not isinstance(entry, dict) or "kind" not in entry or "name" not in entry.get("metadata", {}):
            raise AddonError(f"{source} contains a document that is not a Kubernetes object")
    return documents


def _render(addon: dict[str, Any]) -> dict[str, Any]:
    texts = []
    for manifest in addon["manifests"]:
        with open(manifest["path"], encoding="utf-8") as handle:
            texts.append(handle.read())
    folder = ADDONS / os.path.basename(addon["name"])
    return {
        "name": addon["name"],
        "objects": objects_of(folder, addon["values"], texts),
        "waits": addon["waits"],
        "replaces": addon["replaces"],
        "not_beside": addon.get("not_beside", []),
    }


def _identity(entry: Object) -> list[str]:
    return [entry["metadata"].get("namespace", ""), f"{entry['kind'].lower()}/{entry['metadata']['name']}"]


class ActionModule(ActionBase):
    """Renders every wanted add-on. Applies those of the phase, and only keeps the objects of the others."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Returns the result of the module."""
        del tmp
        arguments = self._task.args
        only = set(arguments.get("only") or ())
        try:
            rendered = [(addon["phase"], _render(addon)) for addon in arguments["wanted"]]
        except (AddonError, OSError, KeyError) as error:
            raise AnsibleActionFail(f"the add-ons cannot be rendered: {error}") from error
        return self._execute_module(
            module_name="pai_addons",
            module_args={
                "addons": [
                    addon
                    for phase, addon in rendered
                    if arguments["phase"] in ("", phase) and (not only or addon["name"] in only)
                ],
                "only": sorted(only),
                "wanted": [addon["name"] for _phase, addon in rendered],
                # An object may move from one add-on to another. The first one must not prune it.
                "kept": [_identity(entry) for _phase, addon in rendered for entry in addon["objects"]],
                "settings": arguments.get("settings") or {},
            },
            task_vars=task_vars,
        )
