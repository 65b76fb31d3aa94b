"""Where the cache keeps its content: now, and where the site's files want it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pai_install.errors import PaiError
from pai_install.registry.model import Azure, Cache, Registries


class Content(BaseModel):
    """A folder of the first control-plane node, or a container in Azure, without secrets. endpoint: "" for
    Azure's own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)
    folder: str = ""
    account: str = ""
    container: str = ""
    endpoint: str = ""

    @model_validator(mode="after")
    def _is_one(self) -> Content:
        if bool(self.folder) == bool(self.account and self.container):
            raise ValueError("the content is in a folder or in Azure")
        return self

    def __str__(self) -> str:
        """In words for the admin."""
        return self.folder or f"Azure account {self.account}, container {self.container}"


def content_of(cache: Cache) -> Content:
    """Where it is with these settings."""
    if cache.azure is None:
        return Content(folder=cache.folder)
    return Content(account=cache.azure.account, container=cache.azure.container, endpoint=cache.azure.endpoint)


def content_of_variables(folder: str, azure: Mapping[str, str]) -> Content:
    """The same of the role's variables."""
    named = {name: azure.get(name, "") for name in ("account", "container", "endpoint")}
    return Content(**named) if azure else Content(folder=folder)


def read_note(text: str) -> Content | None:
    """Parses the first control-plane node's note about its cache. Returns None if the note is unusable."""
    try:
        return Content.model_validate_json(text)
    except ValidationError:
        return None


def with_content(found: Registries, content: Content | None) -> Registries:
    """Returns the registries while the cache uses `content`, regardless of the site's files. None: the site's files
    decide.

    Raises PaiError if the files lack the key of its account.
    """
    cache = found.cache
    if cache is None or content is None:
        return found
    return replace(found, cache=replace(cache, folder=content.folder or cache.folder, azure=_azure(cache, content)))


def place_of(cache: Cache, content: Content) -> dict[str, str]:
    """Returns the place with its key, for the copy. Raises PaiError if the site's files lack the key."""
    azure = _azure(cache, content)
    if azure is None:
        return {"folder": content.folder}
    key = azure.key.get_secret_value()
    return {"account": azure.account, "access_key": key, "container": azure.container, "endpoint": azure.endpoint}


def _azure(cache: Cache, content: Content) -> Azure | None:
    if content.folder:
        return None
    named = cache.account
    if named is None or named.account != content.account:
        raise PaiError(
            f"cannot reach the content of the cache: it is in the {content}, and config.yaml lacks the "
            "key of that account",
            code="azure-key-missing",
            remedy=f"write docker_cache_azure_account_name: {content.account} and docker_cache_azure_account_key until "
            "registry rotate --backend has moved the content away. From one account to another it goes by a folder",
        )
    return Azure(content.account, named.key, content.container, content.endpoint)
