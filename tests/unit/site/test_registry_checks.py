"""Rules between the registries of both files that need more than one file of a golden case."""

from __future__ import annotations

from pathlib import Path

from pai_install.site.load import read_site
from tests.unit.site.sites import CONFIG, LAYOUT

AZURE = (
    "enable_docker_cache: true\ndocker_cache_azure_account_name: acc\n"
    "docker_cache_azure_account_key: {env: PAI_TEST_AZURE_KEY}\n"
)


def test_a_limit_of_what_is_in_azure_is_an_error_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text(CONFIG + AZURE)
    services = tmp_path / "services-configuration.yaml"
    services.write_text("registry:\n  keep-days: 7\n  size-limit: 100Gi\n")
    (found,) = [problem for problem in read_site(tmp_path).problems if problem.is_error]
    assert (found.file, found.line, found.code) == (str(services), 3, "site.azure-size")
    assert "does not tell what was used last" in found.message
