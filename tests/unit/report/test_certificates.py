"""The table of certificates, as text and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.json_schema import schema_of
from pai_install.plan.certificates import CertificateRow
from pai_install.report.certificates import CertificateEntry, CertificatesReport, certificates_text

GOOD = CertificateRow("m1", "/a.crt", "API server", 1_830_000_000, 347, Verdict.PASS, "", "pai-install certs renew")
SOON = CertificateRow("m2", "/b.crt", "etcd", 1_801_000_000, 11, Verdict.WARN, "", "pai-install certs renew")
TORN = CertificateRow("m2", "/c.crt", "kubelet", None, None, Verdict.UNKNOWN, "torn", "restart the kubelet")


def _report(*rows: CertificateRow, unreachable: tuple[str, ...] = ()) -> CertificatesReport:
    entries = tuple(map(CertificateEntry.model_validate, rows))
    return CertificatesReport(certificates=entries, unreachable=unreachable, exit_code=0)


def test_those_that_end_first_are_at_the_top(snapshot: SnapshotAssertion) -> None:
    assert certificates_text(_report(GOOD, SOON, TORN, unreachable=("m3",))) == snapshot


def test_no_cluster_is_said(snapshot: SnapshotAssertion) -> None:
    assert certificates_text(_report()) == snapshot
    assert certificates_text(_report(unreachable=("m1",))) == snapshot


def test_data_has_its_schema() -> None:
    data = _report(GOOD, SOON, TORN, unreachable=("m3",)).as_json()
    jsonschema.validate(data, schema_of(CertificatesReport))
    assert [(one["days"], one["verdict"], one["remedy"]) for one in data["certificates"]] == [
        (347, "PASS", ""),
        (11, "WARN", "pai-install certs renew"),
        (None, "UNKNOWN", "restart the kubelet"),
    ]
    assert data["unreachable"] == ["m3"]
