"""Facts of a GPU that follow from its name: generation, class, and mandatory fields."""

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
        """Returns the position in the order of generations, or -1 if unknown."""
        return products().age(self.generation)

    def must_report(self, field: Field, driver_major: int) -> bool:
        """Returns whether this GPU must report `field`. Without name or version it must."""
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
    """Returns the traits from the name and the architecture line."""
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
