"""What certificates are for, until when they are valid, and who is to renew them."""

from __future__ import annotations

import pytest

from pai_install.checks.finding import worst
from pai_install.checks.verdict import Verdict
from pai_install.plan.certificates import (
    CONTROLLER_HOST,
    KUBECONFIG,
    CertificateRow,
    certificate_findings,
    certificate_rows,
)
from pai_install.plan.observed import Certificate, Observed
from pai_install.site import Site

NOW = 1_800_000_000.0
DAY = 86400
APISERVER = "/etc/kubernetes/pki/apiserver.crt"


def ends(path: str, days: float) -> Certificate:
    return Certificate(path=path, expires=int(NOW + days * DAY))


def rows(site: Site, *entries: Certificate, box: tuple[Certificate, ...] = ()) -> tuple[CertificateRow, ...]:
    return certificate_rows(site, {"master": Observed(hostname="master", certificates=entries)}, box, NOW)


@pytest.mark.parametrize(
    ("days", "verdict", "words"),
    [
        (300, Verdict.PASS, "certificates valid until 2027-11-11"),
        (29, Verdict.WARN, f"{APISERVER} expires in 29 days"),
        (0, Verdict.FAIL, f"{APISERVER} has expired"),
        (-2, Verdict.FAIL, f"{APISERVER} has expired"),
    ],
)
def test_certificate_that_ends_first_is_named(site: Site, days: int, verdict: Verdict, words: str) -> None:
    found = certificate_findings(rows(site, ends("/etc/kubernetes/pki/ca.crt", 3650), ends(APISERVER, days)))
    assert [(one.subject, one.verdict, one.message) for one in found] == [("master", verdict, words)]
    assert bool(found[0].remedy) is (verdict is not Verdict.PASS)


def test_certificate_that_cannot_be_read_is_unknown_and_not_good(site: Site) -> None:
    torn = Certificate(path="/var/lib/kubelet/pki/kubelet-client-current.pem", problem="openssl cannot read it")
    (found,) = certificate_findings(rows(site, torn))
    assert (found.verdict, found.value) == (Verdict.UNKNOWN, "openssl cannot read it")


def test_what_a_program_has_not_read_yet_is_a_warning(site: Site) -> None:
    fresh = ends(APISERVER, 365).model_copy(update={"unread": True})
    findings = certificate_findings(rows(site, fresh, ends("/etc/kubernetes/admin.conf", 365)))
    assert worst(findings) is Verdict.WARN
    assert findings[0].remedy == "pai-install certs renew"


def test_the_dev_box_is_a_subject_of_its_own(site: Site) -> None:
    found = certificate_findings(rows(site, ends(APISERVER, 300), box=(ends(KUBECONFIG, 5),)))
    assert [(one.subject, one.verdict) for one in found] == [("master", "PASS"), (CONTROLLER_HOST, "WARN")]
    assert "pai-install apply" in found[1].remedy


@pytest.mark.parametrize(
    ("path", "purpose", "renewable"),
    [
        (APISERVER, "API server", True),
        ("/etc/kubernetes/pki/etcd/peer.crt", "etcd at its members", True),
        ("/etc/kubernetes/scheduler.conf", "scheduler", True),
        ("/etc/kubernetes/pki/ca.crt", "authority of the cluster", False),
        ("/var/lib/kubelet/pki/kubelet-client-current.pem", "kubelet", False),
        ("/etc/pai-install/store/server.pem", "component store", False),
        ("/etc/pai-install/registry/ca.pem", "authority of store and cache", False),
        (".pai/registry.json authority 2", "authority of store and cache", False),
        (".pai/registry.json cache", "store, cache, scheduler, console and monitoring", False),
    ],
)
def test_each_has_a_purpose_and_somebody_who_renews_it(site: Site, path: str, purpose: str, *, renewable: bool) -> None:
    (row,) = rows(site, ends(path, 5))
    assert (row.purpose, row.renewable) == (purpose, renewable)
    assert row.remedy


def test_rows_say_days_and_dates(site: Site) -> None:
    soon, torn = rows(site, ends(APISERVER, 2.5), Certificate(path="/etc/kubernetes/admin.conf", problem="torn"))
    assert (soon.days, soon.date) == (2, "2027-01-17")
    assert (torn.days, torn.date, torn.verdict, torn.problem) == (None, "", Verdict.UNKNOWN, "torn")


def test_machines_that_did_not_answer_are_left_out(site: Site) -> None:
    assert certificate_rows(site, {}, (), NOW) == ()
