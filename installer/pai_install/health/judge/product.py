"""Whether two ways of writing a GPU model mean one card: "a100-80gb" and "NVIDIA A100-SXM4-80GB"."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NOISE = {"nvidia", "tesla", "geforce", "quadro", "grid", "gpu", "graphics", "card", "generation", "edition"}
# These make another card of the one without them.
_VARIANTS = {"ti", "super", "ada", "pro", "laptop", "max"}
_GLUED = re.compile(r"\b([gr]tx)(?=[a-z]?\d)|(?<=\d{4})(?=(?:ti|super)\b)")
_MEMORY = re.compile(r"\b(\d+) ?gi?b?\b")
_FORMS = {"sxm": "sxm", "hbm3": "sxm", "hbm3e": "sxm", "pcie": "pcie", "nvl": "nvl"}


@dataclass(frozen=True, slots=True)
class Product:
    """A model in parts. memory in GB and form are '' where the text does not state them."""

    words: frozenset[str]
    memory: str
    form: str


def product_of(text: str) -> Product:
    """Returns the parts of a product name or of a model in the site."""
    text = _GLUED.sub(r"\1 ", re.sub(r"[\s_/-]+", " ", text.lower()))
    memory = _MEMORY.search(text)
    words = [word for word in _MEMORY.sub(" ", text).split() if word not in _NOISE]
    forms = [_FORMS[short] for word in words if (short := re.sub(r"^(sxm)\d$", r"\1", word)) in _FORMS]
    known = {word for word in words if not re.match(r"(sxm\d?|pcie|nvl|hbm\d\w?)$", word)}
    kept = frozenset(word for word in known if len(word) > 2 or word in _VARIANTS or re.search(r"\d", word))
    return Product(kept, memory.group(1) if memory else "", forms[0] if forms else "")


def same_model(name: str, wanted: str) -> bool:
    """Whether the product `name` is the model that a site calls `wanted`: every word of it, whole, no other variant.

    Memory size and form factor count only where both state them.
    """
    seen, expected = product_of(name), product_of(wanted)
    if not expected.words <= seen.words or (expected.words and expected.words & _VARIANTS != seen.words & _VARIANTS):
        return False
    stated = ((expected.memory, seen.memory), (expected.form, seen.form))
    return all(one == other or not one or not other for one, other in stated)
