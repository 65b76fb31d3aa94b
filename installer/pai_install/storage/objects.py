"""Converts grants to Kubernetes objects. Pure.

PV and PVC name each other, and neither has a storage class. So no other claim binds the volume, no other volume binds
the claim, and a default class has no effect. `Retain`: the revocation of a grant removes the access, never the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from pai_install.site.services.storages import DRIVERS, StorageEntry
from pai_install.storage.model import Grant

Object = dict[str, Any]

_HOSTNAME = "kubernetes.io/hostname"
_ADMISSION = "admissionregistration.k8s.io/v1"
# the label of what tries storages and copies them
PROBE = "pai-install/probe"


def volumes(grants: Iterable[Grant]) -> Iterator[Object]:
    """The PV of each grant, and its PVC where it has one."""
    for grant in grants:
        yield volume(grant)
        if grant.claimed:
            yield claim(grant)


def closings(claims: Mapping[str, tuple[str, ...]]) -> Iterator[Object]:
    """Yields admission policies that deny new pods with these claims (claim -> namespaces), except our tests.
    Kubernetes enforces them.
    """
    for name, namespaces in claims.items():
        yield _policy(name)
        yield _binding(name, namespaces)


def _policy(claim: str) -> Object:
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    # a name of a storage has no quote
    expression = (
        f"(has(object.metadata.labels) && '{PROBE}' in object.metadata.labels) || !has(object.spec.volumes) || "
        "object.spec.volumes.all(v, !has(v.persistentVolumeClaim) || "
        f"v.persistentVolumeClaim.claimName != '{claim}')"
    )
    message = f"the storage of claim {claim} is being replaced. Try again later"
    return {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"pai-storage-{claim}"},
        "spec": {
            # A pod that slips through would change the old place during the last copy.
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [pods]},
            "validations": [{"expression": expression, "message": message}],
        },
    }


def _binding(claim: str, namespaces: tuple[str, ...]) -> Object:
    within = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
    return {
        "apiVersion": _ADMISSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"pai-storage-{claim}"},
        "spec": {
            "policyName": f"pai-storage-{claim}",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchExpressions": [within]}},
        },
    }


def secrets(grants: Iterable[Grant]) -> Iterator[Object]:
    """Yields the Secret of each grant with a secret mount, in the form of the add-on's template: metadata and data.

    It is immutable: a rotation creates a new one, because machines read it only once, at the mount.
    """
    yield from filter(None, map(_secret, grants))


def probe_volume_objects(grant: Grant, labels: Mapping[str, str]) -> tuple[Object, ...]:
    """All objects of a grant with these labels more, as the API takes them."""
    found = [*_plain_secrets(grant), volume(grant), claim(grant)]
    return tuple(
        {**it, "metadata": {**it["metadata"], "labels": {**it["metadata"]["labels"], **labels}}} for it in found
    )


def _plain_secrets(grant: Grant) -> Iterator[Object]:
    for it in secrets([grant]):
        words = {**it["plain_data"], **it["secret_data"]}
        yield {"apiVersion": "v1", "kind": "Secret", "metadata": it["metadata"], "type": "Opaque", "stringData": words}


def volume(grant: Grant) -> Object:
    """Returns the PV. For an adopted PV, it only has our labels and the reclaim policy."""
    storage = grant.storage
    # Server-side apply owns each field that it names, and removes the field when it is named no more.
    if grant.adopted:
        kept: Object = {"persistentVolumeReclaimPolicy": "Retain"}
        return {**_named("PersistentVolume", grant.volume, grant), "spec": kept}
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
    return {**_named("PersistentVolume", grant.volume, grant), "spec": spec}


def _named(kind: str, name: str, grant: Grant, **where: str) -> Object:
    notes: Object = {"annotations": {"pai-install/adopted": "true"}} if grant.adopted else {}
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **where, "labels": _labels(grant), **notes}}


def claim(grant: Grant) -> Object:
    """The PVC. Its label `share` is OpenPAI's: "false" gives every user a folder."""
    found = _named("PersistentVolumeClaim", grant.claim, grant, namespace=grant.namespace)
    if grant.adopted:
        return found
    spec = {
        "accessModes": [access_mode(grant.storage)],
        "storageClassName": "",
        "volumeName": grant.volume,
        "resources": {"requests": {"storage": grant.storage.capacity}},
    }
    return {**found, "spec": spec}


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
    if not secret or grant.adopted:  # what was made by hand has one of its own
        return None
    return {
        "metadata": {"name": grant.secret, "namespace": grant.namespace, "labels": _labels(grant)},
        "plain_data": {name: value for name, value in plain.items() if value},
        "secret_data": {name: value.get_secret_value() for name, value in secret.items() if value},
    }


def _words(storage: StorageEntry) -> tuple[Mapping[str, str | None], Mapping[str, SecretStr | None]]:
    """Returns the driver's attributes: public ones and secrets."""
    if storage.type == "smb":
        return {"username": storage.username, "domain": storage.domain}, {"password": storage.password}
    if storage.type in ("azureFile", "azureBlob"):
        return {"azurestorageaccountname": storage.account_name}, {"azurestorageaccountkey": storage.account_key}
    return {}, {}
