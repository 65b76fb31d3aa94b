"""The certificates of a cluster: purpose, expiry, and renewal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.plan.observed import Certificate, Observed
from pai_install.site import Site

CHECK = "certificates"
CONTROLLER_HOST = "controller host"
KUBECONFIG = ".pai/kubeconfig"
RENEW_WITHIN_DAYS = 30
_DAY_S = 86400
_PKI = "/etc/kubernetes/pki"
_RENEW = "pai-install certs renew"
_APPLY = "pai-install apply: it renews the certificate"
_ROTATE = "pai-install registry rotate --ca"
_KUBELET = "the kubelet should have renewed the certificate: journalctl --unit kubelet; systemctl restart kubelet"
_UNREAD = "the program that reads it has to restart"
_FOR_EVER = "a cluster keeps its authority: docs/certificates.md says how to move to a new one"

# path, or how a path begins -> what it is for, and what to do when it ends soon; the first that fits
_KINDS: Mapping[str, tuple[str, str]] = {
    f"{_PKI}/ca.crt": ("authority of the cluster", _FOR_EVER),
    f"{_PKI}/front-proxy-ca.crt": ("authority of API extensions", _FOR_EVER),
    f"{_PKI}/etcd/ca.crt": ("authority of etcd", _FOR_EVER),
    f"{_PKI}/apiserver.crt": ("API server", _RENEW),
    f"{_PKI}/apiserver-kubelet-client.crt": ("API server at kubelets", _RENEW),
    f"{_PKI}/apiserver-etcd-client.crt": ("API server at etcd", _RENEW),
    f"{_PKI}/front-proxy-client.crt": ("API server at API extensions", _RENEW),
    f"{_PKI}/etcd/server.crt": ("etcd", _RENEW),
    f"{_PKI}/etcd/peer.crt": ("etcd at its members", _RENEW),
    f"{_PKI}/etcd/healthcheck-client.crt": ("who asks etcd after its health", _RENEW),
    "/etc/kubernetes/admin.conf": ("administrator", _RENEW),
    "/etc/kubernetes/super-admin.conf": ("administrator beyond all rights", _RENEW),
    "/etc/kubernetes/controller-manager.conf": ("controller manager", _RENEW),
    "/etc/kubernetes/scheduler.conf": ("scheduler", _RENEW),
    "/etc/kubernetes/": ("Kubernetes", _RENEW),
    "/var/lib/kubelet/": ("kubelet", _KUBELET),
    "/etc/pai-install/store/server.pem": ("component store", _APPLY),
    "/etc/pai-install/docker-cache/": ("registry cache", _APPLY),
    "/etc/pai-install/node-exporter/server.pem": ("node exporter", _APPLY),
    "/etc/pai-install/": ("authority of store and cache", _ROTATE),
    KUBECONFIG: ("administrator", f"pai-install apply, where the control plane's is newer; else {_RENEW}"),
    ".pai/registry.json authority": ("authority of store and cache", _ROTATE),
    ".pai/registry.json": ("store, cache, scheduler, console and monitoring", _APPLY),
}


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """One certificate. subject: a machine, or the controller host. purpose: its use, in a few words.

    expires: seconds since 1970, None if unreadable. days: whole days left, negative after expiry. unread: its program
    has not loaded it yet.
    """

    subject: str
    path: str
    purpose: str
    expires: int | None
    days: int | None
    verdict: Verdict
    problem: str
    remedy: str
    unread: bool = False

    @property
    def date(self) -> str:
        """Returns the day of expiry in UTC, or ""."""
        return "" if self.expires is None else datetime.fromtimestamp(self.expires, UTC).date().isoformat()

    @property
    def renewable(self) -> bool:
        """Whether `certs renew` renews it."""
        return self.remedy == _RENEW

    @property
    def advice(self) -> str:
        """The remedy, where it is time for one."""
        return "" if self.verdict is Verdict.PASS else self.remedy


def certificate_rows(
    site: Site, observed: Mapping[str, Observed], box: Sequence[Certificate], now: float
) -> tuple[CertificateRow, ...]:
    """Every certificate, machine by machine in the order of the layout, then those of the controller host.

    box: the certificates of the controller host. now: seconds since 1970. Unreachable machines are left out.
    """
    machines = [
        (machine.hostname, observed[machine.hostname])
        for machine in site.present_machines
        if machine.hostname in observed
    ]
    found = [_row(name, entry, now) for name, seen in machines for entry in seen.certificates]
    return (*found, *(_row(CONTROLLER_HOST, entry, now) for entry in box))


def certificate_findings(rows: Sequence[CertificateRow]) -> tuple[Finding, ...]:
    """Returns findings per machine and for the controller host: unreadable certificates and the first expiry."""
    return tuple(finding for subject in dict.fromkeys(row.subject for row in rows) for finding in _of(subject, rows))


def _row(subject: str, entry: Certificate, now: float) -> CertificateRow:
    purpose, remedy = next((kind for start, kind in _KINDS.items() if entry.path.startswith(start)), ("", ""))
    days = None if entry.expires is None else int((entry.expires - now) // _DAY_S)
    problem = entry.problem or (_UNREAD if entry.unread else "")
    verdict = _verdict(entry, now)
    return CertificateRow(subject, entry.path, purpose, entry.expires, days, verdict, problem, remedy, entry.unread)


def _verdict(entry: Certificate, now: float) -> Verdict:
    if entry.expires is None:
        return Verdict.UNKNOWN
    if entry.expires <= now:
        return Verdict.FAIL
    soon = entry.expires - now < RENEW_WITHIN_DAYS * _DAY_S
    return Verdict.WARN if soon or entry.unread else Verdict.PASS


def _of(subject: str, rows: Sequence[CertificateRow]) -> Iterator[Finding]:
    own = [row for row in rows if row.subject == subject]
    for row in own:
        if row.expires is None:
            message = f"cannot read the expiry date of {row.path}"
            remedy = "read the file with openssl x509"
            yield Finding(CHECK, Verdict.UNKNOWN, subject, message, row.problem, remedy=remedy)
        elif row.unread:
            message = f"{row.path} was written after the program that reads it started"
            yield Finding(CHECK, Verdict.WARN, subject, message, remedy=row.remedy)
    dated = [row for row in own if row.expires is not None and not row.unread]
    if dated:
        yield _soonest(min(dated, key=lambda row: (row.expires, row.path)))


def _soonest(row: CertificateRow) -> Finding:
    expected = f"more than {RENEW_WITHIN_DAYS} days left"
    if row.verdict is Verdict.PASS:
        return Finding(CHECK, row.verdict, row.subject, f"certificates valid until {row.date}", row.date, expected)
    message = "has expired" if row.verdict is Verdict.FAIL else f"expires in {row.days} days"
    return Finding(CHECK, row.verdict, row.subject, f"{row.path} {message}", row.date, expected, row.remedy)
