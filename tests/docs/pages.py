"""Every page that is made from the code."""

from __future__ import annotations

from pathlib import Path

from tests.docs.addons import with_addon_keys
from tests.docs.alerts import alerts_page
from tests.docs.codes import codes_page
from tests.docs.decisions import decisions_page
from tests.docs.examples import with_plan, with_report
from tests.docs.health import with_checks
from tests.docs.inventories import PROGRAMS_FILE, programs_file
from tests.docs.jobs import with_examples, with_meanings
from tests.docs.pictures import pictures
from tests.docs.preflight import with_preflight
from tests.docs.programs import components_page
from tests.docs.reports import causes
from tests.docs.roles import ROLES, readme, roles_page
from tests.docs.schemas import schemas
from tests.docs.security import with_controls
from tests.docs.services import services_page
from tests.docs.settings import with_settings
from tests.docs.verbs import cli_page

ROOT = Path(__file__).parents[2]


def pages(root: Path = ROOT) -> dict[str, str]:
    """Path below `root` -> what the page should say. Reads the pages that are made in part. Writes nothing."""

    def part(name: str) -> str:
        return (root / name).read_text(encoding="utf-8")

    return {
        "docs/reference/cli.md": cli_page(),
        "docs/alerts.md": alerts_page(),
        "docs/reference/roles.md": roles_page(root),
        "docs/reference/exit-codes.md": codes_page(),
        "docs/reference/components.md": components_page(),
        PROGRAMS_FILE: programs_file(),
        "docs/reference/services.md": services_page(),
        "docs/contributing/add-on.md": with_addon_keys(part("docs/contributing/add-on.md")),
        "docs/decisions/README.md": decisions_page(root),
        "docs/examples.md": with_examples(part("docs/examples.md")),
        "docs/openpai-jobs.md": with_meanings(part("docs/openpai-jobs.md"), "openpai/ps-worker.json"),
        "docs/volcano-and-kubeflow.md": with_meanings(
            part("docs/volcano-and-kubeflow.md"),
            "tensorflow/volcano.yaml",
            "mindspore/volcano.yaml",
            "tensorflow/tfjob.yaml",
            "pytorch/pytorchjob.yaml",
            "mpi/jobset.yaml",
        ),
        "docs/health.md": with_checks(part("docs/health.md")),
        "docs/preflight.md": with_preflight(part("docs/preflight.md"), root),
        "docs/reading-a-plan.md": with_plan(part("docs/reading-a-plan.md")),
        "docs/reports.md": with_report(part("docs/reports.md"), causes()),
        "docs/security.md": with_controls(part("docs/security.md")),
        "docs/site.md": with_settings(part("docs/site.md")),
        **{f"roles/{role}/README.md": readme(root, role) for role in ROLES},
        **schemas(),
        **pictures(),
    }
