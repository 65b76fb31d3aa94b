"""Jobs as the API server checks them before they are created. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pai_install.kube.objects import child


def without_secrets(value: Any, secrets: Collection[str]) -> Any:  # noqa: ANN401 - any part of an object
    """A part of an object without its references to these Secrets.

    They do not exist yet, and `job submit` creates them with the job. A policy cannot know that they are the owner's.
    """
    if isinstance(value, Mapping):
        return {key: _field(key, one, secrets) for key, one in value.items()}
    if isinstance(value, list):
        # The policy on Secrets would refuse names that do not begin with the user.
        kept = (one for one in value if not _named(one) & set(secrets))
        return [without_secrets(_volume(one, secrets), secrets) for one in kept]
    return value


def _field(key: str, value: Any, secrets: Collection[str]) -> Any:  # noqa: ANN401
    if key == "imagePullSecrets" and isinstance(value, list):
        return [one for one in value if child({"it": one}, "it").get("name") not in secrets]
    return without_secrets(value, secrets)


def _named(item: object) -> set[object]:
    """The Secrets that an entry of env, envFrom, or of a projected volume names."""
    whole = {"it": item}
    paths = (("it", "valueFrom", "secretKeyRef"), ("it", "secretRef"), ("it", "secret"))
    return {name for path in paths if (name := child(whole, *path).get("name"))}


def _volume(item: object, secrets: Collection[str]) -> object:
    """A volume of a Secret as an empty one: its mounts stay."""
    if isinstance(item, Mapping) and child(item, "secret").get("secretName") in secrets:
        return {**{key: value for key, value in item.items() if key != "secret"}, "emptyDir": {}}
    return item
