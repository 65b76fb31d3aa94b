"""OpenPAI's registries: where images come from, and the cache in the cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from pai_install.documents.document import Entries
from pai_install.documents.scalars import invalid
from pai_install.site.services.openpai import Common, Service
from pai_install.site.services.section import Flag, Hidden, KebabSection, NodePort, Port, Url, Word, choice


class DockerRegistry(KebabSection):
    """cluster.docker-registry: where the images of OpenPAI's services are."""

    namespace: Word | None = None
    """Part of the image name after the registry."""
    domain: Word | None = None
    """The registry, e.g. docker.io."""
    username: Word | None = None
    """Account at the registry."""
    password: Hidden | None = None
    """Password of that account."""
    tag: Word | None = None
    """Version of OpenPAI's images, as written: 1.8 stays 1.8."""
    secret_name: Word | None = None
    """Name of the pull secret in Kubernetes."""

    @model_validator(mode="before")
    @classmethod
    def both_or_neither(cls, data: object) -> object:
        """Refuses half a login."""
        if isinstance(data, Entries) and ("username" in data) != ("password" in data):
            raise invalid("missing", "username and password go together", "give both or neither")
        return data


class Cluster(Service):
    """cluster: common settings of OpenPAI's services."""

    common: Common | None = None
    """Switches of OpenPAI's services."""
    docker_registry: DockerRegistry | None = None
    """Registry of the images of OpenPAI's services."""


class DockerCache(Service):
    """docker-cache: a pull-through cache of a registry, in the cluster."""

    enabled: Flag = False
    """Run the cache."""
    storage_backend: Annotated[str, choice("azure", "filesystem")] = Field(default="azure", alias="storage_backend")
    """Storage of the content: azure or filesystem."""
    azure_account_name: Word | None = Field(default=None, alias="azure_account_name")
    """Azure storage account."""
    azure_account_key: Hidden | None = Field(default=None, alias="azure_account_key")
    """Key of the storage account."""
    azure_container_name: Word = Field(default="dockerregistry", alias="azure_container_name")
    """Container in the storage account."""
    fs_mount_path: Word = Field(default="/var/lib/registry", alias="fs_mount_path")
    """Folder of the content on the filesystem backend."""
    registry_listener: Word = Field(default=":5000", alias="registry_listener")
    """Listen address of the registry in its pod."""
    container_port: Port = Field(default=5000, alias="container_port")
    """Port of the pod."""
    service_port: Port = Field(default=5000, alias="service_port")
    """Port of the service."""
    service_nodeport: NodePort = Field(default=30500, alias="service_nodeport")
    """Port on every machine."""
    remote_url: Url = Field(default="https://registry-1.docker.io", alias="remote_url")
    """The registry that is cached."""
    registry_htpasswd: Hidden | None = None
    """Users of the cache, as base64 of an htpasswd file (bcrypt)."""
