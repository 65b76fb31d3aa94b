"""The operations and their arguments as text and data."""

from __future__ import annotations

from typing import Any

from pai_install.operations.backup import Backup
from pai_install.operations.certs_renew import CertsRenew
from pai_install.operations.install import Install
from pai_install.operations.node_add import NodeAdd
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_reboot import NodeReboot
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.operations.operation import Operation
from pai_install.operations.registry_inspect import RegistryGc, RegistryStatus, RegistryTest, RegistryWarm
from pai_install.operations.registry_rotate import RegistryRotate
from pai_install.operations.registry_upstream import RegistryUpstream
from pai_install.operations.reset import Reset
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.storage_test import StorageTest
from pai_install.operations.upgrade import Upgrade
from pai_install.operations.user_add import UserAdd
from pai_install.operations.user_import import UserImport
from pai_install.operations.user_remove import UserRemove
from pai_install.operations.vc_apply import VcApply
from pai_install.operations.verify import Verify
from pai_install.schema_parts import closed_object, published

OPERATIONS_SCHEMA_VERSION = 1

OPERATIONS: tuple[type[Operation], ...] = (
    Install,
    Verify,
    Upgrade,
    Reset,
    NodeCordon,
    NodeUncordon,
    NodeDrain,
    CertsRenew,
    Backup,
    NodeAdd,
    NodeReboot,
    RegistryTest,
    RegistryWarm,
    RegistryStatus,
    RegistryGc,
    RegistryRotate,
    RegistryUpstream,
    StorageTest,
    StorageRotate,
    SchedulerTest,
    UserAdd,
    UserImport,
    UserRemove,
    VcApply,
)


def operations_data() -> dict[str, Any]:
    """The published form: name, summary and the JSON Schema of the arguments of each."""
    return {
        "schema_version": OPERATIONS_SCHEMA_VERSION,
        "operations": [
            {"name": one.name, "summary": one.summary, "arguments": one.model_json_schema()} for one in OPERATIONS
        ],
    }


def operations_text() -> str:
    """A line for each, and its arguments below."""
    lines = []
    for one in OPERATIONS:
        lines.append(f"{one.name}: {one.summary}")
        lines += [f"    {name}: {field.description}" for name, field in one.model_fields.items()]
    return "\n".join(lines)


def schema() -> dict[str, Any]:
    """The JSON Schema of `operations_data`."""
    text: dict[str, Any] = {"type": "string"}
    one = closed_object(name=text, summary=text, arguments={"type": "object"})
    return published(
        "pai-install operations",
        OPERATIONS_SCHEMA_VERSION,
        operations={"type": "array", "items": one},
    )
