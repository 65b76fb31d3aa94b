#!/usr/bin/python
"""Ansible module: keep the cache's configuration of one upstream during the trial of another account or address."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_registry_kept
short_description: Keep the cache's files for an upstream, and put them back
description:
  - Only root can read the copies, which contain the earlier account.
  - Puts nothing back where nothing was kept.
  - Putting back also takes the pod back to the configuration that it was started for, where that is another one.
  - Does nothing in check mode.
options:
  upstream: {description: Registry as images name it., type: str, required: true}
  state:
    description: Save copies of the files, restore them, or delete the copies.
    type: str
    choices: [keep, restore, forget]
    required: true
  folder: {description: Configuration of the cache., type: path, default: /etc/pai-install/docker-cache}
  kept: {description: Folder of the copies., type: path, default: /etc/pai-install/docker-cache.kept}
  timeout: {description: Seconds to wait for the pod., type: int, default: 180}
  kubeconfig: {description: Which kubeconfig to use., type: path, default: /etc/kubernetes/admin.conf}
  kubectl: {description: Which kubectl to use., type: path, default: /usr/local/bin/kubectl}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Put back what the cache had for quay.io
  pai_registry_kept: {upstream: quay.io, state: restore}
"""
RETURN = r"""
paths: {description: Files that were put back., type: list, elements: str, returned: always}
"""

import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_kubectl import ADMIN_CONF, KUBECTL, Kubectl, KubectlError

NAMESPACE = "--namespace=pai-docker-cache"
DEPLOYMENT = "deployment/docker-cache"
REVISION = "deployment.kubernetes.io/revision"


def files_of(upstream: str) -> dict[str, str]:
    """Name of a copy -> the file, below the cache's folder."""
    return {"registry": f"registry-{upstream}.yml", "login": f"login-{upstream}", "ca": f"ca/{upstream}/ca.pem"}


def keep(folder: str, kept: str, upstream: str, revision: str) -> None:
    """Copies the existing files atomically."""
    new = f"{kept}.new"
    forget(new)
    os.mkdir(new, mode=0o700)
    for copy, name in files_of(upstream).items():
        if os.path.exists(os.path.join(folder, name)):
            shutil.copy2(os.path.join(folder, name), os.path.join(new, copy))
    with open(os.path.join(new, "revision"), "w", encoding="utf-8") as handle:
        handle.write(revision)
    forget(kept)
    # A half-made copy would be restored as the whole configuration.
    os.rename(new, kept)


def restore(folder: str, kept: str, upstream: str) -> list[str]:
    """Restores each file atomically, and deletes files without a copy. Returns the paths."""
    changed = []
    for copy, name in files_of(upstream).items():
        path, source = os.path.join(folder, name), os.path.join(kept, copy)
        if os.path.exists(source):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            shutil.copy2(source, f"{path}.new")
            os.replace(f"{path}.new", path)
            changed.append(path)
        elif os.path.exists(path):
            os.unlink(path)
            changed.append(path)
    return changed


def forget(kept: str) -> None:
    """Removes the copies."""
    shutil.rmtree(kept, ignore_errors=True)


def revision_of(kubectl: Kubectl) -> str:
    """Returns the revision of the pod's configuration, or "". Raises KubectlError."""
    found = kubectl.get(NAMESPACE, "--ignore-not-found", DEPLOYMENT)
    return str(found.get("metadata", {}).get("annotations", {}).get(REVISION, ""))


def take_pod_back(kubectl: Kubectl, revision: str, timeout: int) -> bool:
    """Whether the pod had to be started with an earlier configuration. Raises KubectlError."""
    if not revision or revision == revision_of(kubectl):
        return False
    # The pod may have been started for other environment or files than those that are back now.
    undo = ("rollout", "undo", NAMESPACE, DEPLOYMENT, f"--to-revision={revision}")
    wait = ("rollout", "status", NAMESPACE, DEPLOYMENT, f"--timeout={timeout}s")
    for words in (undo, wait):
        answer = kubectl.run(*words)
        if not answer.ok:
            raise KubectlError(answer.message)
    return True


def put_back(module: AnsibleModule, kubectl: Kubectl) -> None:
    """Ends the module."""
    given = module.params
    try:
        with open(os.path.join(given["kept"], "revision"), encoding="utf-8") as handle:
            revision = handle.read()
    except OSError:
        module.exit_json(changed=False, paths=[])
    paths = restore(given["folder"], given["kept"], given["upstream"])
    try:
        take_pod_back(kubectl, revision, given["timeout"])
    except KubectlError as error:
        module.fail_json(msg=f"the files of {given['upstream']} are back, but not the cache's pod: {error}")
    forget(given["kept"])
    module.exit_json(changed=True, paths=paths)


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "upstream": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["keep", "restore", "forget"], "required": True},
            "folder": {"type": "path", "default": "/etc/pai-install/docker-cache"},
            "kept": {"type": "path", "default": "/etc/pai-install/docker-cache.kept"},
            "timeout": {"type": "int", "default": 180},
            "kubeconfig": {"type": "path", "default": ADMIN_CONF},
            "kubectl": {"type": "path", "default": KUBECTL},
        },
        supports_check_mode=True,
    )
    given = module.params
    kubectl = Kubectl(given["kubeconfig"], given["kubectl"])
    if module.check_mode:
        module.exit_json(changed=False, paths=[])
    if given["state"] == "restore":
        put_back(module, kubectl)
    if given["state"] == "forget":
        forget(given["kept"])
        module.exit_json(changed=False, paths=[])
    try:
        keep(given["folder"], given["kept"], given["upstream"], revision_of(kubectl))
    except (KubectlError, OSError) as error:
        module.fail_json(msg=f"what the cache has for {given['upstream']} cannot be kept: {error}")
    module.exit_json(changed=False, paths=[])


if __name__ == "__main__":
    main()
