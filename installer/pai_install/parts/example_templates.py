"""The examples as templates of jobs, which all groups see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.jobs.template import JobTemplate, near_template_name, summary_of, template_object
from pai_install.site.groups import TEMPLATES_NAMESPACE
from pai_install.system.content import content_dir

_ENDINGS = ("json", "yaml")
# what JSON has no place for
_SUMMARIES = {
    "openpai-single": "TensorFlow on 2 GPUs, in OpenPAI's protocol 1",
    "openpai-ps-worker": "TensorFlow with 2 parameter servers and 2 workers, in OpenPAI's protocol 1",
}


def example_templates() -> Iterator[dict[str, Any]]:
    """Yields the ConfigMap of each job file in examples/."""
    folder = content_dir() / "examples"
    for path in sorted(one for ending in _ENDINGS for one in folder.glob(f"*/*.{ending}")):
        name, content = near_template_name(f"{path.parent.name}-{path.stem}"), path.read_text(encoding="utf-8")
        summary = summary_of(content) or _SUMMARIES.get(name, "")
        template = JobTemplate(name, TEMPLATES_NAMESPACE, "", content, summary, (path.parent.name,), example=True)
        yield template_object(template)
