"""Storages as values: what is granted to whom, and under which names."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.site.services.storages import StorageEntry


@dataclass(frozen=True, slots=True)
class Grant:
    """A storage in a group's namespace: one PV and one PVC, bound to each other before Kubernetes looks.

    generation: counts up with each rotation; the objects of two generations stand beside each other. claim_name: of
    the PVC, where it is not the storage's. adopted: the PV that an admin made by hand. current: whether new jobs use
    it. claimed: whether it has its PVC. prefix: of the names of what stands for another grant while that is tried.
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
