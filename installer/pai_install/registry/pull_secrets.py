"""Accounts of groups at private registries -> Kubernetes objects. Pure.

A group's pods pull with its accounts without a word in them: its namespace's default account names the Secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pai_install.registry.model import Login
from pai_install.site.services.registries import DOCKER_HUB

Object = dict[str, Any]

NAME = "pai-registries"
# what clients call Docker Hub in files of this form, since the time of its first API
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"

# pods hold tokens of it: it is given back when it is no longer needed, never deleted (pai_objects.py)
_NOT_OURS = {"pai-install/removal": "release"}


def pull_secrets(logins: Iterable[Login], namespaces: Mapping[str, str]) -> Iterator[Object]:
    """A Secret with all its accounts for each group that has one, as the add-on's template takes it.

    namespaces: group -> its namespace.
    """
    accounts = tuple(logins)
    for group, namespace in namespaces.items():
        own = [login for login in accounts if group in login.groups]
        if own:
            text = json.dumps({"auths": {_key(login): {"auth": _auth(login)} for login in own}}, sort_keys=True)
            yield {
                "metadata": {"name": NAME, "namespace": namespace},
                "secret_data": {".dockerconfigjson": text},
            }


def accounts(logins: Iterable[Login], namespaces: Mapping[str, str]) -> Iterator[Object]:
    """The default account of each namespace that has such a Secret."""
    with_login = {group for login in logins for group in login.groups}
    for group, namespace in namespaces.items():
        if group in with_login:
            yield {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": namespace, "annotations": _NOT_OURS},
                "imagePullSecrets": [{"name": NAME}],
            }


def _key(login: Login) -> str:
    return _DOCKER_HUB_KEY if login.registry == DOCKER_HUB else login.registry


def _auth(login: Login) -> str:
    return base64.b64encode(f"{login.username}:{login.password.get_secret_value()}".encode()).decode()
