"""layout.yaml as it is written: machine types and machines, in OpenPAI's format with our extensions."""

from __future__ import annotations

from pydantic import Field

from pai_install.site import fields as f
from pai_install.site.secret import Secret
from pai_install.site.settings import SiteFile


class DeviceEntry(f.KebabModel):
    """machine-sku.NAME.computing-device: the accelerators of one machine."""

    type: f.Resource = Field(description="Resource name of the device plugin")
    model: f.Word = Field(description="Free text, e.g. A100")
    count: f.MachineCount


class CpuEntry(f.KebabModel):
    """machine-sku.NAME.cpu."""

    vcore: f.MachineCount


class SkuEntry(f.KebabModel):
    """machine-sku.NAME: a hardware type."""

    mem: f.Memory
    cpu: CpuEntry
    computing_device: DeviceEntry | None = None


class SshEntry(f.KebabModel):
    """machine-list[].ssh: how this machine is reached where it differs from config.yaml."""

    user: f.UserName | None = None
    port: f.Port = 22
    key_file: SiteFile | None = None
    password_from: Secret | None = Field(default=None, description="{env: NAME} or {file: PATH}")


class MachineEntry(f.KebabModel):
    """machine-list[]: one machine."""

    hostname: f.HostName
    hostip: f.IpAddress
    machine_type: f.Word = Field(description="A name in machine-sku")
    pai_master: f.Boolean = False
    pai_worker: f.Boolean = False
    pai_storage: f.Boolean = False
    absent: f.Boolean = Field(default=False, description="Leave this machine alone for now")
    ssh: SshEntry | None = None
    labels: dict[f.LabelKey, f.LabelValue] = Field(default_factory=dict)
    taints: tuple[f.Taint, ...] = ()
    become: f.Boolean = Field(default=True, description="Use sudo; false when the SSH user is root")


class KubernetesEntry(f.KebabModel):
    """`kubernetes`: addresses for old OpenPAI tools, without effect here."""

    api_servers_url: f.Word | None = None
    dashboard_url: f.Word | None = None


class LayoutFile(f.KebabModel):
    """layout.yaml."""

    machine_sku: dict[f.Word, SkuEntry]
    machine_list: tuple[MachineEntry, ...]
    kubernetes: KubernetesEntry | None = None
