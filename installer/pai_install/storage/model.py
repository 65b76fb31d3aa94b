"""Storages as values: grants with their groups and names."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.site.services.storages import StorageEntry


@dataclass(frozen=True, slots=True)
class Grant:
    """A storage in a group's namespace: one PV and one PVC, bound to each other in advance.

    generation: increases with each rotation. Objects of two generations coexist. claim_name: of the PVC, if it is not
    the storage's. adopted: PV created manually by an admin. current: new jobs use it. claimed: its PVC exists. prefix:
    of the names of temporary objects for a trial of another grant.
    """

    storage: StorageEntry
    group: str
    namespace: str
    generation: int = 1
    claim_name: str = ""
    adopted: str = ""
    current: bool = True
    claimed: bool = True
    prefix: str = ""

    @property
    def claim(self) -> str:
        """The PVC's name: OpenPAI's, which is the storage's own, until it is rotated."""
        return f"{self.prefix}{self.claim_name or self.storage.name}"

    @property
    def volume(self) -> str:
        """The PV's name, which is the cluster's: no other group's, no other generation's."""
        return self.adopted or f"{self.namespace}-{self.prefix}{self.storage.name}-g{self.generation}"

    @property
    def secret(self) -> str:
        """The name of the Secret that its mounts are made with."""
        return f"storage-{self.prefix}{self.storage.name}-g{self.generation}"
