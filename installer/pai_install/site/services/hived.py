"""HiveD: its configuration is YAML inside a text of services-configuration.yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from pai_install.documents.document import Document, Entries, Text
from pai_install.documents.parse import parse_embedded
from pai_install.documents.scalars import invalid, plain_data
from pai_install.site.services.openpai import Service
from pai_install.site.services.section import Flag, ListOf, MappingOf, NodePort, Section, Whole, Word

# keys with a name, which HiveD reads as text
_NAMES = frozenset({"cellType", "childCellType", "cellAddress", "pinnedCellId"})
_TOP = "a mapping with physicalCluster and virtualClusters"


class SkuShare(Section):
    """skuTypes.NAME: the share of one cell of that type in its machine."""

    gpu: Whole | None = None
    """Devices."""
    cpu: Whole | None = None
    """Cores."""
    memory: Word | None = None
    """A Kubernetes quantity, e.g. 55244Mi."""
    gpu_type: Word | None = Field(default=None, alias="gpuType")
    """An older name."""


class CellType(Section):
    """cellTypes.NAME: a cell made of cells."""

    child_cell_type: Word | None = Field(default=None, alias="childCellType")
    """Type of the children: a cell type, or an SKU type at the lowest level."""
    child_cell_number: Whole | None = Field(default=None, alias="childCellNumber")
    """Number of children."""
    is_node_level: Flag = Field(default=False, alias="isNodeLevel")
    """Whether a cell of this type is one machine."""


class PhysicalCell(Section):
    """physicalCells[]: a cell that is there."""

    cell_type: Word | None = Field(default=None, alias="cellType")
    """Type of the cell. Required at the top level only."""
    cell_address: Word | None = Field(default=None, alias="cellAddress")
    """Name of the machine, or the number of the device below it."""
    pinned_cell_id: Word | None = Field(default=None, alias="pinnedCellId")
    """Name with which a virtual cluster pins this cell."""
    cell_children: Annotated[tuple[PhysicalCell, ...], ListOf] = Field(default=(), alias="cellChildren")
    """Children, if they differ from those of the type."""


class PhysicalCluster(Section):
    """physicalCluster: the existing hardware."""

    sku_types: Annotated[dict[Word, SkuShare], MappingOf] = Field(default_factory=dict, alias="skuTypes")
    """Types of cells at the bottom: a device, or a share of a machine without devices."""
    gpu_types: Annotated[dict[Word, SkuShare], MappingOf] = Field(default_factory=dict, alias="gpuTypes")
    """An older name of skuTypes."""
    cell_types: Annotated[dict[Word, CellType], MappingOf] = Field(default_factory=dict, alias="cellTypes")
    """Cells made of cells."""
    physical_cells: Annotated[tuple[PhysicalCell, ...], ListOf] = Field(default=(), alias="physicalCells")
    """Cells of the cluster."""


class VirtualCell(Section):
    """virtualClusters.NAME.virtualCells[]: a guarantee."""

    cell_type: Word | None = Field(default=None, alias="cellType")
    """Path of types from the top: TOP.MIDDLE.TYPE."""
    cell_number: Whole | None = Field(default=None, alias="cellNumber")
    """How many."""


class PinnedCell(Section):
    """virtualClusters.NAME.pinnedCells[]: a guarantee of one very cell."""

    pinned_cell_id: Word | None = Field(default=None, alias="pinnedCellId")
    """pinnedCellId of a physical cell."""


class HivedCluster(Section):
    """virtualClusters.NAME."""

    virtual_cells: Annotated[tuple[VirtualCell, ...], ListOf] = Field(default=(), alias="virtualCells")
    """Guaranteed cells."""
    pinned_cells: Annotated[tuple[PinnedCell, ...], ListOf] = Field(default=(), alias="pinnedCells")
    """Pinned cells."""


class HivedConfig(Section):
    """hivedscheduler.config."""

    kube_api_server_address: Word | None = Field(default=None, alias="kubeApiServerAddress")
    """Address of the API server for HiveD."""
    kube_config_file_path: Word | None = Field(default=None, alias="kubeConfigFilePath")
    """Kubeconfig of HiveD."""
    web_server_address: Word | None = Field(default=None, alias="webServerAddress")
    """Listen address of HiveD."""
    force_pod_bind_threshold: Whole | None = Field(default=None, alias="forcePodBindThreshold")
    """Calls after which HiveD binds a pod itself. Ignored: HiveD never does."""
    waiting_pod_scheduling_block_milli_sec: Whole | None = Field(
        default=None, alias="waitingPodSchedulingBlockMilliSec"
    )
    """Milliseconds that HiveD blocks while a pod is pending."""
    physical_cluster: PhysicalCluster = Field(default_factory=PhysicalCluster, alias="physicalCluster")
    """Cells that exist."""
    virtual_clusters: Annotated[dict[Word, HivedCluster], MappingOf] = Field(
        default_factory=dict, alias="virtualClusters"
    )
    """Guarantees per virtual cluster."""

    _content: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def content(self) -> Mapping[str, Any]:
        """Returns the block as plain data with all keys in order, including unknown ones."""
        return self._content

    @model_validator(mode="wrap")
    @classmethod
    def keep_content(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:  # noqa: ANN401 - any content
        """The model with the content that it was read from."""
        found = handler(data)
        if isinstance(data, Mapping):
            found._content = {str(key): _plain(value) for key, value in data.items() if value not in (None, "none")}  # noqa: SLF001 - its own
        return found

    @model_validator(mode="before")
    @classmethod
    def has_both(cls, data: object, info: ValidationInfo) -> object:
        """Adds an error for each missing part. `none`, which OpenPAI's tests write, means empty."""
        if isinstance(data, Entries) and isinstance(info.context, Document):
            for key in ("physicalCluster", "virtualClusters"):
                if key not in data:
                    message = f"{key} is missing in the HiveD configuration"
                    info.context.add(data.path, "site.missing", message, "add it")
            return _without_none(data)
        return data


def _plain(value: object, key: str = "") -> Any:  # noqa: ANN401 - any content
    """Returns plain data. Names stay text, even if they look like a number."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item, str(name)) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if key in _NAMES and value is not None else plain_data(value)


def _without_none(data: Entries) -> Entries:
    kept = Entries({key: value for key, value in data.items() if value != "none"})
    kept.mark, kept.path = data.mark, data.path
    return kept


def _read_config(value: object, info: ValidationInfo) -> object:
    """Returns the YAML inside the text, or None if it is empty or invalid."""
    if isinstance(value, Text) and isinstance(info.context, Document):
        if value.vault:
            raise invalid("vault", "an ansible-vault string is accepted for secrets only", "write it in plain text")
        return parse_embedded(value, info.context, top=_TOP)
    if isinstance(value, Entries) and isinstance(info.context, Document):
        message = "is a mapping, and OpenPAI reads a block of text here"
        info.context.add(value.path, "site.type", message, "write config: |", severity="warning")
    return value


class Hivedscheduler(Service):
    """hivedscheduler: OpenPAI's scheduler."""

    config: Annotated[
        HivedConfig | None,
        BeforeValidator(_read_config),
        WithJsonSchema({"type": ["string", "object"], "contentMediaType": "application/yaml"}),
    ] = None
    """A block of text (`config: |`) with HiveD's YAML. Without it, or empty: no HiveD."""
    webservice_port: NodePort = 30096
    """Port of HiveD's own API on every machine."""
