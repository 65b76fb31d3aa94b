"""A real API server takes the objects of prepulled images, and their pods are allowed in their namespace."""

from __future__ import annotations

from tests.addons import ROOT, addon_action
from tests.integration.control_plane import Api

VALUES = {"helper_image": "registry.pai.internal/busybox:stable", "names": ["docker.io/team/train:1", "quay.io/b:2"]}


def test_pods_pass_the_restricted_profile(api: Api) -> None:
    namespace, workers = addon_action().objects_of(ROOT / "addons/prepulled_images", VALUES, ())
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    api.apply(namespace)
    template = api.apply(workers)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "one", "namespace": "pai-images"}}
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**pod["metadata"], "name": "default"}})
    assert api.create(pod) == ""
    pod["spec"]["containers"][1]["securityContext"] = {}
    pod["metadata"]["name"] = "two"
    assert "violates PodSecurity" in api.create(pod)
