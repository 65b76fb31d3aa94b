"""The operations: one file per acting verb, each a pure function from an observation to a plan."""

from __future__ import annotations

from pai_install.operations.backup import Backup
from pai_install.operations.certs_renew import CertsRenew
from pai_install.operations.install import Install
from pai_install.operations.node_add import NodeAdd
from pai_install.operations.node_cordon import NodeCordon
from pai_install.operations.node_drain import NodeDrain
from pai_install.operations.node_reboot import NodeReboot
from pai_install.operations.node_uncordon import NodeUncordon
from pai_install.operations.operation import Operation
from pai_install.operations.registry_look import RegistryGc, RegistryStatus, RegistryTest, RegistryWarm
from pai_install.operations.registry_rotate import RegistryRotate
from pai_install.operations.registry_upstream import RegistryUpstream
from pai_install.operations.reset import Reset
from pai_install.operations.scheduler_test import SchedulerTest
from pai_install.operations.storage_rotate import StorageRotate
from pai_install.operations.storage_test import StorageTest
from pai_install.operations.upgrade import Upgrade
from pai_install.operations.user_add import UserAdd
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
    UserRemove,
    VcApply,
)
