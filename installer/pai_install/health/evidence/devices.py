"""What is known of a GPU from its name alone: generation, class, and what it therefore must report."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pai_install.health.evidence.fields import ARCHITECTURE, PRODUCT, Field, Need
from pai_install.health.evidence.parse.nvidia import Gpu
from pai_install.health.evidence.products import products


@dataclass(frozen=True, slots=True)
class Traits:
    """generation: one of products.yml, '' when not known. consumer: a card that lacks data centre features.

    fabric: part of an NVSwitch system. virtual: a vGPU, of which the guest sees little.
    """

    generation: str
    consumer: bool
    fabric: bool
    virtual: bool = False

    @property
    def age(self) -> int:
        """Position in the order of generations; -1 when not known."""
        return products().age(self.generation)

    def must_report(self, field: Field, driver_major: int) -> bool:
        """Whether this GPU's answer must hold `field`; in doubt (no name, no version) it must."""
        if driver_major and (driver_major < field.since or 0 < field.until <= driver_major):
            return False
        age, remapping = self.age, products().remapping_since
        return {
            Need.ALWAYS: True,
            Need.DATACENTER: not self.consumer,
            Need.REMAPPING: not self.consumer and (age < 0 or age >= remapping),
            Need.RETIREMENT: not self.consumer and age < remapping,
            Need.FABRIC: self.fabric,
            Need.OPTIONAL: False,
        }[field.need]


def traits_of(gpu: Gpu) -> Traits:
    """What the name and the architecture line say."""
    name = next((gpu.texts[path] for path in PRODUCT.paths if path in gpu.texts), "")
    return _traits(name, gpu.texts.get(ARCHITECTURE.paths[0], "").split(" ")[0])


@lru_cache(maxsize=256)
def _traits(name: str, stated: str) -> Traits:
    known = products()
    generation = stated if stated in known.generations else generation_of(name)
    virtual = known.virtual.search(name.strip()) is not None
    return Traits(generation, known.consumer.search(name) is not None, known.fabric.search(name) is not None, virtual)


def generation_of(name: str) -> str:
    """The generation of a product name, '' when not known."""
    return next((item.name for item in products().generations.values() if item.match.search(name)), "")
