"""Storages as values: what is granted to whom, and under which names."""

from __future__ import annotations

from dataclasses import dataclass

from pai_install.site.services.storages import StorageEntry


@dataclass(frozen=True, slots=True)
class Grant:
    """A storage in a group's namespace: one PV and one PVC, bound to each other before Kubernetes looks.

    generation: counts up with each rotation; the objects of two generations stand beside each other.
    """

    storage: StorageEntry
    group: str
    namespace: str
    generation: int = 1

    @property
    def claim(self) -> str:
        """The PVC's name: OpenPAI's, which is the storage's own."""
        return self.storage.name if self.generation == 1 else f"{self.storage.name}-g{self.generation}"

    @property
    def volume(self) -> str:
        """The PV's name, which is the cluster's: no other group's, no other generation's."""
        return f"{self.namespace}-{self.storage.name}-g{self.generation}"

    @property
    def secret(self) -> str:
        """The name of the Secret that its mounts are made with."""
        return f"storage-{self.storage.name}-g{self.generation}"
