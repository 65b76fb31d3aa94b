"""The operations and their arguments, as a result and as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pai_install.json_schema import Report, ReportObject
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


class OperationEntry(ReportObject):
    """An operation."""

    name: str
    summary: str
    arguments: Mapping[str, Any] = Field(description="JSON Schema of its arguments.")


class OperationsReport(Report, title="pai-install operations"):
    """The verbs that act."""

    operations: tuple[OperationEntry, ...]


def operations_report() -> OperationsReport:
    """The operations with the JSON Schemas of their arguments."""
    found = (
        OperationEntry(name=one.name, summary=one.summary, arguments=one.model_json_schema()) for one in OPERATIONS
    )
    return OperationsReport(operations=tuple(found))


def operations_text() -> str:
    """A line for each, and its arguments below."""
    lines = []
    for one in OPERATIONS:
        lines.append(f"{one.name}: {one.summary}")
        lines += [f"    {name}: {field.description}" for name, field in one.model_fields.items()]
    return "\n".join(lines)
