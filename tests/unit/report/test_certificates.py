"""The table of certificates, as text and as data."""

from __future__ import annotations

import jsonschema  # type: ignore[import-untyped]

from pai_install.checks.verdict import Verdict
from pai_install.plan.certificates import CertificateRow
from pai_install.report.certificates import certificates_data, certificates_text, schema

GOOD = CertificateRow("m1", "/a.crt", "API server", 1_830_000_000, 347, Verdict.PASS, "", "pai-install certs renew")
SOON = CertificateRow("m2", "/b.crt", "etcd", 1_801_000_000, 11, Verdict.WARN, "", "pai-install certs renew")
TORN = CertificateRow("m2", "/c.crt", "kubelet", None, None, Verdict.UNKNOWN, "torn", "restart the kubelet")


def test_those_that_end_first_are_at_the_top() -> None:
    assert certificates_text((GOOD, SOON, TORN), ("m3",)) == (
        "MACHINE  CERTIFICATE  OF          ENDS        DAYS LEFT\n"
        "m2       /c.crt       kubelet                            UNKNOWN torn\n"
        "m2       /b.crt       etcd        2027-01-26  11         WARN\n"
        "m1       /a.crt       API server  2027-12-28  347\n"
        "UNKNOWN m2, /c.crt: restart the kubelet\n"
        "WARN m2, /b.crt: pai-install certs renew\n"
        "m3 was not reached\n"
    )


def test_no_cluster_is_said() -> None:
    assert certificates_text((), ()) == "no control plane of a cluster was seen: there are no certificates yet\n"
    assert certificates_text((), ("m1",)) == "m1 was not reached\n"


def test_data_has_its_schema() -> None:
    data = certificates_data((GOOD, SOON, TORN), ("m3",))
    jsonschema.validate(data, schema())
    assert [(one["days"], one["verdict"], one["remedy"]) for one in data["certificates"]] == [
        (347, "PASS", ""),
        (11, "WARN", "pai-install certs renew"),
        (None, "UNKNOWN", "restart the kubelet"),
    ]
    assert data["unreachable"] == ["m3"]
