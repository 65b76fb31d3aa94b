"""Grants -> Kubernetes objects. Pure.

PV and PVC name each other, and neither has a storage class: so no other claim takes the volume, no other volume is
taken for the claim, and a default class has no say. `Retain`: what is taken from a group is the access, never the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from pai_install.site.services.storages import DRIVERS, StorageEntry
from pai_install.storage.model import Grant

Object = dict[str, Any]

_HOSTNAME = "kubernetes.io/hostname"


def volumes(grants: Iterable[Grant]) -> Iterator[Object]:
    """The PV and the PVC of each grant."""
    for grant in grants:
        yield volume(grant)
        yield claim(grant)


def secrets(grants: Iterable[Grant]) -> Iterator[Object]:
    """The Secret of each grant whose mount needs one, as the add-on's template takes it: metadata, and what is in it.

    It is never edited: a rotation makes another, as machines read it once, at the mount.
    """
    yield from filter(None, map(_secret, grants))


def volume(grant: Grant) -> Object:
    """The PV."""
    storage = grant.storage
    spec: Object = {
        "capacity": {"storage": storage.capacity},
        "accessModes": [access_mode(storage)],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "claimRef": {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": grant.namespace,
            "name": grant.claim,
        },
        **_SOURCES[storage.type](grant),
    }
    if storage.mount_options:
        spec["mountOptions"] = list(storage.mount_options)
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": grant.volume, "labels": _labels(grant)},
        "spec": spec,
    }


def claim(grant: Grant) -> Object:
    """The PVC. Its label `share` is OpenPAI's: "false" gives every user a folder."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": grant.claim, "namespace": grant.namespace, "labels": _labels(grant)},
        "spec": {
            "accessModes": [access_mode(grant.storage)],
            "storageClassName": "",
            "volumeName": grant.volume,
            "resources": {"requests": {"storage": grant.storage.capacity}},
        },
    }


def access_mode(storage: StorageEntry) -> str:
    """A storage that is read only is so for every machine."""
    return storage.access_mode if storage.written else "ReadOnlyMany"


def _labels(grant: Grant) -> Object:
    storage = grant.storage
    own = {"pai-install/storage": storage.name, "pai-install/generation": str(grant.generation)}
    return {**own, "share": str(storage.share).lower()}


def _nfs(grant: Grant) -> Object:
    """Kubernetes' own NFS volume, which needs no driver."""
    storage = grant.storage
    return {"nfs": {"server": storage.server, "path": storage.path, "readOnly": not storage.written}}


def _host_path(grant: Grant) -> Object:
    """A folder that is missing is an error of the pod: root does not make it."""
    return {"hostPath": {"path": grant.storage.path, "type": "Directory"}}


def _local(grant: Grant) -> Object:
    machine = {"key": _HOSTNAME, "operator": "In", "values": [grant.storage.machine]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [machine]}]}}
    return {"local": {"path": grant.storage.path}, "nodeAffinity": affinity}


def _smb(grant: Grant) -> Object:
    storage = grant.storage
    return _csi(grant, {"source": f"//{storage.server}/{storage.share_name}"})


def _azure_file(grant: Grant) -> Object:
    storage = grant.storage
    attributes = {"shareName": storage.share_name, "storageAccount": storage.account_name}
    return _csi(grant, {**attributes, **_server(storage)})


def _azure_blob(grant: Grant) -> Object:
    storage = grant.storage
    attributes = {"containerName": storage.container_name, "storageAccount": storage.account_name}
    return _csi(grant, {**attributes, "protocol": "fuse2", **_server(storage)})


def _server(storage: StorageEntry) -> Object:
    return {"server": storage.server} if storage.server else {}


def _csi(grant: Grant, attributes: Object) -> Object:
    """Two volumes with one handle on a machine would share one mount: the handle is the PV's own name."""
    secret = {"name": grant.secret, "namespace": grant.namespace}
    return {
        "csi": {
            "driver": DRIVERS[grant.storage.type],
            "volumeHandle": grant.volume,
            "readOnly": not grant.storage.written,
            "volumeAttributes": attributes,
            "nodeStageSecretRef": secret,
        }
    }


_SOURCES: Mapping[str, Any] = {
    "nfs": _nfs,
    "smb": _smb,
    "azureFile": _azure_file,
    "azureBlob": _azure_blob,
    "hostPath": _host_path,
    "local": _local,
}


def _secret(grant: Grant) -> Object | None:
    """None where the mount needs none."""
    plain, secret = _words(grant.storage)
    if not secret:
        return None
    return {
        "metadata": {"name": grant.secret, "namespace": grant.namespace, "labels": _labels(grant)},
        "plain_data": {name: value for name, value in plain.items() if value},
        "secret_data": {name: value.get_secret_value() for name, value in secret.items() if value},
    }


def _words(storage: StorageEntry) -> tuple[Mapping[str, str | None], Mapping[str, SecretStr | None]]:
    """What the driver reads: what anyone may see, and what not."""
    if storage.type == "smb":
        return {"username": storage.username, "domain": storage.domain}, {"password": storage.password}
    if storage.type in ("azureFile", "azureBlob"):
        return {"azurestorageaccountname": storage.account_name}, {"azurestorageaccountkey": storage.account_key}
    return {}, {}
