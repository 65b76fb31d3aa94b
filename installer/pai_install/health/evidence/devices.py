"""What is known of a GPU from its name alone: generation, class, and what it therefore must report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pai_install.health.evidence.fields import ARCHITECTURE, PRODUCT, Field, Need
from pai_install.health.evidence.parse.nvidia import Gpu

# Oldest first; the position is the age.
GENERATIONS = ("Kepler", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell")
_NAMES = (
    ("Kepler", r"\bK[1-9]\d{0,2}\b|\bGT 7\d\d|GTX [67]\d\d|GRID K"),
    ("Maxwell", r"\bM[1-9]\d{0,2}\b|GTX 9\d\d|TITAN X\b"),
    ("Pascal", r"\bP(4|6|40|100|[0-9]{3,4})\b|GTX 10\d\d|TITAN Xp"),
    ("Volta", r"\bV100|TITAN V\b"),
    ("Turing", r"\bT(4|1000|600|400)\b|RTX 20\d\d|GTX 16\d\d|Quadro RTX|TITAN RTX"),
    ("Ampere", r"\bA(2|10|10G|16|30|40|100|800)\b|A100|A800|RTX 30\d\d|RTX A\d{3,4}"),
    ("Ada", r"\bL(4|20|40|40S)\b|RTX 40\d\d|\d{4} Ada|Ada Generation"),
    ("Hopper", r"\bG?H(20|100|200|800)\b|GH200"),
    ("Blackwell", r"\bG?B(100|200|300)\b|RTX 50\d\d|RTX PRO \d{4}"),
)
_CONSUMER = re.compile(r"GeForce|TITAN|\bGTX\b|\bGT \d|\bRTX [2345]0\d\d|Quadro|RTX A?\d{4}|RTX PRO")
_SWITCHED = re.compile(
    r"\b(?:G?B(?:100|200|300)|G?H(?:100|200|800|20))\b.*(?:HBM3|SXM|NVL72)|GB[23]00|\bB[123]00\b|H[12]00 SXM"
)


_VIRTUAL = re.compile(r"-\d+(?:Q|B|C|A|CME)$")


@dataclass(frozen=True, slots=True)
class Traits:
    """generation: one of GENERATIONS, '' when not known. consumer: a card that lacks data centre features.

    fabric: part of an NVSwitch system. virtual: a vGPU, of which the guest sees little.
    """

    generation: str
    consumer: bool
    fabric: bool
    virtual: bool = False

    @property
    def age(self) -> int:
        """Position in GENERATIONS; -1 when not known."""
        return GENERATIONS.index(self.generation) if self.generation in GENERATIONS else -1

    def must_report(self, field: Field, driver_major: int) -> bool:
        """Whether this GPU's answer must hold `field`; in doubt (no name, no version) it must."""
        if driver_major and driver_major < field.since:
            return False
        ampere = GENERATIONS.index("Ampere")
        return {
            Need.ALWAYS: True,
            Need.DATACENTER: not self.consumer,
            Need.REMAPPING: not self.consumer and (self.age < 0 or self.age >= ampere),
            Need.RETIREMENT: not self.consumer and self.age < ampere,
            Need.FABRIC: self.fabric,
            Need.OPTIONAL: False,
        }[field.need]


def traits_of(gpu: Gpu) -> Traits:
    """What the name and the architecture line say."""
    name = next((gpu.texts[path] for path in PRODUCT.paths if path in gpu.texts), "")
    return _traits(name, gpu.texts.get(ARCHITECTURE.paths[0], "").split(" ")[0])


@lru_cache(maxsize=256)
def _traits(name: str, stated: str) -> Traits:
    generation = stated if stated in GENERATIONS else generation_of(name)
    virtual = bool(_VIRTUAL.search(name.strip()))
    return Traits(generation, bool(_CONSUMER.search(name)), bool(_SWITCHED.search(name)), virtual)


def generation_of(name: str) -> str:
    """The generation of a product name, '' when not known."""
    return next((generation for generation, pattern in _NAMES if re.search(pattern, name)), "")
