"""What is read off the models."""

from __future__ import annotations

from pydantic import SecretStr

from pai_install.documents.model_introspection import descriptions, models_below, models_in, parts
from pai_install.site.fields import FrozenModel


class Leaf(FrozenModel):
    """The lowest."""

    inherited: int = 0
    """Said once."""
    secret: SecretStr | None = None


class Branch(Leaf):
    """Above it."""

    leaves: dict[str, tuple[Leaf, ...]] | None = None
    """Its
    leaves."""
    branches: tuple[Branch, ...] = ()


def test_models_are_found_at_any_depth_and_once() -> None:
    assert list(models_in(Branch.model_fields["leaves"].annotation)) == [Leaf]
    assert models_below(Branch) == (Branch, Leaf)


def test_everything_in_the_brackets_is_a_part() -> None:
    assert SecretStr in parts(Leaf.model_fields["secret"].annotation)


def test_the_text_below_an_attribute_describes_it() -> None:
    assert descriptions(Branch) == {"inherited": "Said once.", "leaves": "Its\nleaves."}
