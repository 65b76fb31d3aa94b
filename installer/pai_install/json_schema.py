"""Results of commands: the models that --format json prints, and the JSON Schemas that are derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core.core_schema import WithDefaultSchema

from pai_install.errors import ExitCode

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# The limit is in the schema alone: an odd number from the cluster does not stop a report.
Count = Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]
Seconds = Annotated[float, WithJsonSchema({"type": "number", "minimum": 0, "description": "seconds"})]
# a whole number stays one
Real = Annotated[int | float, WithJsonSchema({"type": "number"})]
ExitStatus = Annotated[int, WithJsonSchema({"enum": [int(code) for code in ExitCode]})]
# a key that is left out where it has nothing to say
OptionalText = Annotated[str, Field(exclude_if=lambda text: not text)]


class ReportObject(BaseModel):
    """An object in the JSON of a command. It has all its keys, always.

    `model_validate` also takes an object whose attributes have the names of the fields.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        serialize_by_alias=True,
        defer_build=True,  # a command uses few of the models that it imports
    )

    def as_json(self) -> dict[str, Any]:
        """The published JSON form."""
        return self.model_dump(mode="json")


class Report(ReportObject):
    """The document of a command, which is the class argument `title`."""

    schema_version: int = 1


class _Generator(GenerateJsonSchema):
    """Requires every key but optional ones. Leaves out titles that repeat a key, and defaults of required keys."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - of the base class
        return False

    def field_is_required(self, field: Mapping[str, Any], total: bool) -> bool:  # noqa: ARG002, FBT001 - of the base class
        return field.get("serialization_exclude_if") is None

    def default_schema(self, schema: WithDefaultSchema) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])


def schema_of(report: type[Report]) -> dict[str, Any]:
    """The JSON Schema of a report."""
    schema = report.model_json_schema(mode="serialization", schema_generator=_Generator)
    schema["properties"]["schema_version"] = {"const": report.model_fields["schema_version"].default}
    return {"$schema": DIALECT, "title": schema["title"], **schema}
