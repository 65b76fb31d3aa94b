"""nvidia_driver of config.yaml: whether the site wants a driver installed, and which."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from pai_install.documents.scalars import invalid, read_text, read_whole, shown

EXISTING = "existing"
_MODULES = ("open", "proprietary")
_PACKAGES = ("distribution", "nvidia")
_REMEDY = "write existing, or for example {branch: 580, modules: open}"
# branches with open modules for data-centre GPUs; the newest number that is taken for a branch and not for a version
_BRANCHES = range(515, 1000)


class DriverSpec(BaseModel):
    """A driver branch, such as 580, its kernel modules, and the source of its packages."""

    model_config = ConfigDict(frozen=True)
    branch: int
    modules: Literal["open", "proprietary"] = "open"
    packages: Literal["distribution", "nvidia"] = "distribution"


def read_driver(value: object) -> object:
    """`existing`, or a mapping with a branch."""
    if isinstance(value, DriverSpec):
        return value
    if not isinstance(value, dict):
        if str(value) == EXISTING:
            return EXISTING
        raise invalid("driver", f"{shown(value)} is not a driver", _REMEDY)
    if unknown := value.keys() - DriverSpec.model_fields.keys():
        raise invalid("driver", f"{', '.join(sorted(map(str, unknown)))} is not known here", _REMEDY)
    if "branch" not in value:
        raise invalid("driver", "has no branch", _REMEDY)
    branch = read_whole(value["branch"])
    if branch not in _BRANCHES:
        raise invalid("driver", f"{branch} is not a branch of the driver", "write its first number alone, e.g. 580")
    return DriverSpec(
        branch=branch,
        modules=_one_of(value.get("modules", "open"), _MODULES),
        packages=_one_of(value.get("packages", "distribution"), _PACKAGES),
    )


def _one_of(value: object, words: tuple[str, ...]) -> Any:  # noqa: ANN401 - one of the words, which pydantic checks
    word = read_text(value)
    if word not in words:
        raise invalid("choice", f"{shown(word)} is not one of {', '.join(words)}", "choose one of them")
    return word


_SCHEMA = {
    "anyOf": [
        {"const": EXISTING},
        {
            "type": "object",
            "properties": {
                "branch": {"type": "integer", "minimum": _BRANCHES.start},
                "modules": {"enum": list(_MODULES)},
                "packages": {"enum": list(_PACKAGES)},
            },
            "required": ["branch"],
            "additionalProperties": False,
        },
    ]
}
Driver = Annotated[Literal["existing"] | DriverSpec, BeforeValidator(read_driver), WithJsonSchema(_SCHEMA)]
