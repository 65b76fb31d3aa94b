"""Everything that is wrong between the scheduler's section, the virtual clusters, HiveD's block and the machines."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.document import Document
from pai_install.documents.problem import YamlPath, dotted
from pai_install.documents.scalars import shown
from pai_install.site.hived_cells import HIVED, TYPES, chains_of, hived_of
from pai_install.site.model import Site
from pai_install.site.names import read_label_value
from pai_install.site.rules.problems import Wrong, add_problems
from pai_install.site.rules.scheduling.clusters import of_clusters
from pai_install.site.rules.scheduling.hived import of_hived
from pai_install.site.rules.scheduling.quotas import of_quotas
from pai_install.site.rules.scheduling.topology import of_topology
from pai_install.site.rules.scheduling.use_limits import of_use_limits
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.hived import HivedConfig
from pai_install.site.workers import workers_of

_LABEL_VALUE = "up to 63 letters, digits, '-', '_' and '.'"


def check_scheduling(source: Document, site: Site) -> None:
    """Adds problems. site: the valid parts of its files."""
    add_problems(source, (*_of_site(site), *_of_block(source, site)))


def _of_site(site: Site) -> Iterator[Wrong]:
    services = site.services
    yield from _sections(site)
    yield from _hived_image(site)
    yield from of_use_limits(site)
    if services.scheduler is not None:
        yield from _labels(site, ("scheduler",))
        yield from of_topology(site, services.scheduler)
    if services.scheduler is not None and services.virtual_clusters is not None:
        yield from of_clusters(site, services.scheduler, services.virtual_clusters)
        yield from of_quotas(site, services.scheduler, services.virtual_clusters)


def _of_block(source: Document, site: Site) -> Iterator[Wrong]:
    """Yields problems of HiveD's block if all parts are readable."""
    config, prefix = hived_of(site), dotted(HIVED)
    # A block with an error is read in part only. The rules below would take what is missing for wrong.
    if config is not None and not any(one.is_error and one.path.startswith(prefix) for one in source.problems):
        yield from _sku_names(config)
        yield from of_hived(site, config)


def _sections(site: Site) -> Iterator[Wrong]:
    """Which of the sections rules."""
    services, settings = site.services, site.settings
    if services.virtual_clusters is not None and services.scheduler is None:
        remedy = "add scheduler: {type: kueue}, or volcano, hived or default"
        yield Wrong(("virtual-clusters",), "missing", "needs the section scheduler, which says what keeps them", remedy)
    if services.scheduler is not None and services.virtual_clusters == ():
        remedy = "list virtual clusters, or remove the section to have one (default) with all devices"
        yield Wrong(("virtual-clusters",), "missing", "is empty: nothing is guaranteed", remedy)
    yield from _of_hived_switch(site)
    yield from _of_training_operator(site)
    if services.hivedscheduler is None or services.hivedscheduler.config is None:
        return
    if services.scheduler is not None or services.virtual_clusters is not None:
        remedy = "keep it as the way back, or remove it"
        message = "does not count: the sections scheduler and virtual-clusters rule"
        yield Wrong(HIVED, "overruled", message, remedy, "warning")
    elif not settings.enable_hived_scheduler:
        message = "does not count: enable_hived_scheduler in config.yaml rules, which is false"
        yield Wrong(HIVED, "overruled", message, "remove one of them", "warning")


def _of_hived_switch(site: Site) -> Iterator[Wrong]:
    scheduler, settings = site.services.scheduler, site.settings
    if scheduler is None or "enable_hived_scheduler" not in settings.model_fields_set:
        return
    if settings.enable_hived_scheduler != (scheduler.type == "hived"):
        value = str(settings.enable_hived_scheduler).lower()
        message = f"{scheduler.type} counts, and not enable_hived_scheduler in config.yaml, which is {value}"
        remedy = "remove enable_hived_scheduler from config.yaml"
        yield Wrong(("scheduler", "type"), "overruled", message, remedy, "warning")


def _of_training_operator(site: Site) -> Iterator[Wrong]:
    """Pods of its jobs have no annotations of HiveD's."""
    scheduler = site.services.scheduler
    if scheduler is not None and scheduler.training_operator and scheduler.type == "hived":
        message = "does not go with hived, which would place no pod of a TFJob"
        yield Wrong(
            ("scheduler", "training-operator"), "contradiction", message, "remove it, or choose kueue or volcano"
        )


def _hived_image(site: Site) -> Iterator[Wrong]:
    """No source that builds has HiveD: its last version needs modules that are nowhere but in its repository."""
    scheduler, settings = site.services.scheduler, site.settings
    if scheduler_of(site) != "hived":
        return
    if settings.component_source == "modules" and "hivedscheduler" not in settings.component_images:
        message = "needs HiveD's image, and there is only its makers': component_source: modules lacks it"
        remedy = (
            "add component_images: {hivedscheduler: FILE} to config.yaml, set enable_hived_scheduler: false, or choose "
            "upstream, mirror, or a bundle"
        )
        yield Wrong(("scheduler", "type") if scheduler is not None else HIVED, "no-image", message, remedy)


def _labels(site: Site, path: YamlPath) -> Iterator[Wrong]:
    """A scheduler finds the machines of an SKU by a label."""
    for sku in workers_of(site):
        try:
            read_label_value(sku)
        except ValueError:
            message = f"the machine type {shown(sku)} of layout.yaml cannot be the value of a node label"
            yield Wrong(path, "sku-name", message, f"rename it there: {_LABEL_VALUE}")


def _sku_names(config: HivedConfig) -> Iterator[Wrong]:
    """The same for the names of HiveD's block, which are those of its machines."""
    for sku in dict.fromkeys(chain.leaf for chain in chains_of(config).values()):
        try:
            read_label_value(sku)
        except ValueError:
            message = f"the machine type {shown(sku)} cannot be the value of a node label"
            yield Wrong(TYPES, "sku-name", message, f"rename it: {_LABEL_VALUE}")
