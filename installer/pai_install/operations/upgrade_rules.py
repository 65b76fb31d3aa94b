"""Rules of upgrades: version skew, downgrades, APIs in use, pods without a controller. Pure.

Source: https://kubernetes.io/releases/version-skew-policy/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai_install.checks.finding import Finding
from pai_install.checks.verdict import Verdict
from pai_install.cluster.drain import unmanaged
from pai_install.errors import ExitCode, PaiError
from pai_install.kube.model import Pod
from pai_install.plan.observation import ApiUse, Observation
from pai_install.plan.versions import KUBERNETES, Versions, desired_version, fits, minor, numbers, require_available
from pai_install.site.model import Site
from pai_install.system.words import plural

# a kubelet may be this many minor versions older than the API servers
_OLDER_KUBELETS = 3
_CHECK = "deprecated-api"
_ROLE = "control_plane"


def require_target(site: Site, to: str) -> None:
    """Raises PaiError (usage) where config.yaml asks for another version than --to, or the source has none such."""
    wanted = desired_version(site)
    if to and wanted and not (fits(to, wanted) or fits(wanted, to)):
        raise PaiError(
            f"cannot upgrade to {to}: config.yaml asks for another version: kubernetes_version: {wanted}",
            code="upgrade-version-differs-from-site",
            remedy=f'set kubernetes_version: "{".".join(to.split(".")[:2])}" in config.yaml, or remove the line',
            exit_code=ExitCode.USAGE,
        )
    if to:
        require_available(site, to)


def require_control_planes(site: Site, observation: Observation) -> None:
    """Raises PaiError where a control plane does not answer, or is none yet."""
    missing = [it.hostname for it in site.control_planes if it.hostname not in observation.machines]
    outside = [
        it.hostname
        for it in site.control_planes
        if it.hostname not in missing and not observation.machines[it.hostname].kubernetes.joined
    ]
    if missing or outside:
        names = ", ".join([*missing, *outside])
        raise PaiError(
            f"cannot upgrade: these control-plane nodes are unreachable or not in the cluster: {names}",
            code="upgrade-control-planes-incomplete",
            remedy=(
                "repair them, or mark them absent: true in layout.yaml. To create a cluster, run pai-install apply"
            ),
            exit_code=ExitCode.UNREACHABLE if missing else ExitCode.PREFLIGHT_FAILED,
        )


def require_applied(site: Site, observation: Observation) -> None:
    """Raises PaiError for a control-plane node with drift from this version of pai-install.

    `apply` installs the requirements of a restoration, such as the program that creates snapshots.
    """
    wanted = {it.hostname: observation.inventory.settings_of(it.hostname) for it in site.control_planes}
    other = [
        host
        for host, settings in wanted.items()
        if (record := observation.machines[host].roles.get(_ROLE)) is not None
        and record.settings.get("role") != settings.get(_ROLE, {}).get("role")
    ]
    if other:
        raise PaiError(
            (f"cannot upgrade {', '.join(other)}: another version of pai-install installed the control plane"),
            code="upgrade-not-applied",
            remedy="run pai-install apply first. It keeps the versions of Kubernetes",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def require_kubernetes(had: Mapping[str, Versions], target: str) -> None:
    """Raises PaiError where Kubernetes would go back, skip a minor version, or leave kubelets too far behind."""
    for host, versions in had.items():
        old = versions.get(KUBERNETES, target)
        if numbers(old) > numbers(target):
            raise _refused(
                "kubernetes-downgrade",
                f"{host} runs Kubernetes {old}, and the site asks for {target}",
                f'Kubernetes does not support downgrades: write kubernetes_version: "{old}"',
            )
        # Another major version is too far, too.
        jump = minor(target)[1] - minor(old)[1] if minor(target)[:1] == minor(old)[:1] else 2
        if jump > 1:
            between = f"{minor(old)[0]}.{minor(old)[1] + 1}"
            raise _refused(
                "kubernetes-upgrade-too-far",
                f"{host} runs Kubernetes {old}, and {target} is more than one minor version away",
                f"upgrade minor by minor: first pai-install upgrade --to {between}",
            )


def require_components(had: Mapping[str, Versions], wanted: Mapping[str, Versions]) -> None:
    """Raises PaiError where this version of pai-install has older programs than the machines run."""
    older = dict.fromkeys(
        f"{name} {versions[name]} on {host}, {new} here"
        for host, versions in had.items()
        for name, new in wanted.get(host, {}).items()
        if name != KUBERNETES and name in versions and numbers(versions[name]) > numbers(new)
    )
    if older:
        raise PaiError(
            "cannot upgrade: the machines run newer programs than this version of pai-install has: "
            f"{next(iter(older))}",
            code="upgrade-components-newer",
            details="\n".join(older),
            remedy="use the pai-install version that installed them, or a newer one",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def removed_by(uses: Sequence[ApiUse], target: str) -> tuple[ApiUse, ...]:
    """The APIs in use that a version no longer has."""
    return tuple(use for use in uses if use.removed and minor(use.removed) <= minor(target))


def require_unused_apis(uses: Sequence[ApiUse], target: str, *, force: bool) -> None:
    """Raises PaiError, naming objects and who wrote them, where APIs are in use that the target lacks."""
    gone = removed_by(uses, target)
    if gone and not force:
        lines = [line for use in gone for line in (f"{use.name}: gone in {use.removed}", *map(_indented, use.users))]
        raise PaiError(
            f"cannot upgrade: {plural(len(gone), 'API')} in use would be removed by Kubernetes {target}",
            code="upgrade-apis-removed",
            details="\n".join(lines),
            remedy="change these programs to the newer API and restart the API servers, or add --force",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _indented(line: str) -> str:
    return f"    {line}"


def warnings(uses: Sequence[ApiUse]) -> tuple[Finding, ...]:
    """Returns a finding per API in use that a later version removes.

    An API without a planned removal needs no action: Kubernetes itself uses Endpoints.
    """
    return tuple(
        Finding(
            _CHECK,
            Verdict.WARN,
            "cluster",
            f"{use.name} is deprecated and in use",
            value="; ".join(use.users[:3]),
            expected=f"unused before Kubernetes {use.removed}",
            remedy="let the program that asks for it use the newer API",
        )
        for use in uses
        if use.removed
    )


def require_owners(pods: Mapping[str, Sequence[Pod]], *, force: bool) -> None:
    """Raises PaiError for pods that nothing would start again."""
    lost = [f"{pod.ref} on {name}" for name, found in pods.items() for pod in unmanaged(found)]
    if lost and not force:
        raise PaiError(
            f"cannot drain the nodes: no controller would re-create {len(lost)} of the pods",
            code="pods-without-controller",
            details="\n".join(lost),
            remedy="delete these pods yourself, or add --force",
            exit_code=ExitCode.PREFLIGHT_FAILED,
        )


def _refused(code: str, message: str, remedy: str) -> PaiError:
    return PaiError(
        message,
        code=code,
        remedy=f"no changes made. {remedy[:1].upper()}{remedy[1:]}",
        exit_code=ExitCode.PREFLIGHT_FAILED,
    )
