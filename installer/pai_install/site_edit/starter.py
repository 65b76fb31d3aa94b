"""A commented starter site. The settings come from the model, so none is missing."""

from __future__ import annotations

import json

from pydantic_core import PydanticUndefined

from pai_install.documents.model_introspection import descriptions
from pai_install.site.settings import NO_EFFECT, Settings

STARTER_LAYOUT = """\
# The machines of the cluster. `pai-install validate` checks this file, `pai-install plan` shows what follows.

# Types of machines: what one of each has.
machine-sku:
  master-machine:
    mem: 64Gi          # as Kubernetes writes it: Gi is 1024^3, G is 1000^3
    cpu:
      vcore: 16
  gpu-machine:
    computing-device:
      type: nvidia.com/gpu   # resource name of the device plugin: also amd.com/gpu, enflame.com/dtu
      model: A100            # free text
      count: 8               # how many one machine has
    mem: 512Gi
    cpu:
      vcore: 64

machine-list:
  - hostname: pai-master     # lower case; becomes the name in Kubernetes
    hostip: 10.0.0.1
    machine-type: master-machine
    pai-master: "true"       # 1, 3 or 5 machines
    # pai-worker: "true"     # a control plane may work, too
  - hostname: pai-worker1
    hostip: 10.0.0.2
    machine-type: gpu-machine
    pai-worker: "true"
    # absent: true           # leave this machine alone for now
    # become: false          # no sudo: the SSH user is root
    # labels: {example.com/rack: r1}
    # taints: ["dedicated=training:NoSchedule"]
    # ssh:                   # where it differs from config.yaml
    #   user: operator
    #   port: 2222
    #   key-file: ~/.ssh/id_worker1
    #   password-from: {env: WORKER1_PASSWORD}
"""

STARTER_SERVICES = """\
# Who uses the cluster, and how they share it. Every section may be left out.

# What keeps virtual clusters: kueue (with JobSet), volcano, hived, or default: Kubernetes' own, which lends nothing.
scheduler:
  type: kueue

# Who is guaranteed what; what is idle, others may use. Without this section one, `default`, has everything.
# virtual-clusters:
#   - name: research
#     groups: [vision]         # groups below that may submit; without it all
#     quota:
#       - sku: gpu-machine     # a machine type of layout.yaml
#         devices: 4           # or machines: 2; where a type has no devices, cores: 16
#   - name: default
#     quota:
#       - {sku: gpu-machine, devices: 4}

# The most that pods of a group request that no queue counts, such as one without a job. Without it, no limit.
jobs:
  unqueued: {cores: 8, memory: 32Gi}

# Groups get a namespace each, and the storages that they are granted.
# authentication:
#   group-manager:
#     admin-group: {groupname: admins}
#     default-group: {groupname: default}
#     grouplist:
#       - groupname: vision
#         extension: {acls: {storageConfigs: [data]}}

# storages:
#   - {name: data, type: nfs, server: nas.example.com, path: /export/data}
"""

_HEAD = """\
# Settings of the whole cluster. Everything after a '#' shows the default.
# Secrets may be written as !vault text, {file: PATH} or {env: NAME} instead of plain text.
"""


def starter_config() -> str:
    """config.yaml with an account and a key, and every other setting as a comment with its meaning."""
    meaning = descriptions(Settings)
    lines = [_HEAD, "user: admin", "ssh_key_file_path: ~/.ssh/id_ed25519"]
    for name, info in Settings.model_fields.items():
        key = info.alias or name
        if name in {"user", "ssh_key_file_path"} or key in NO_EFFECT:
            continue
        default = info.get_default(call_default_factory=True)
        shown = "" if default in (None, PydanticUndefined) else f" {_yaml(default)}"
        lines += ["", f"# {meaning[name]}", f"# {key}:{shown}"]
    return "\n".join(lines) + "\n"


def _yaml(value: object) -> str:
    """A default as YAML: JSON is YAML."""
    return json.dumps(list(value) if isinstance(value, tuple) else value)
