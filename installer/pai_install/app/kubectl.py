"""Use case of kubectl: the cluster's own version here, or on a control plane."""

from __future__ import annotations

import os
import ssl
import urllib.request
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path

from yaml import YAMLError

from pai_install.errors import ExitCode, PaiError
from pai_install.kube.objects import child, rows
from pai_install.ports import API_SERVER_PORT
from pai_install.run.environment import cached_program
from pai_install.run.state import state_of
from pai_install.site import load_site
from pai_install.system.yaml import load_untrusted_yaml

TIMEOUT_S = 2.0
# what apply writes of a cluster and of a user
_KEYS = {
    "cluster": frozenset({"server", "certificate-authority-data"}),
    "user": frozenset({"client-certificate-data", "client-key-data"}),
}


def run_kubectl(site_dir: Path, words: Sequence[str], *, terminal: bool) -> int:
    """Replaces this process by kubectl where it can run here. Else returns its exit code from a control plane.

    terminal: whether stdin and stdout are one.
    """
    site = load_site(site_dir).site
    state = state_of(site_dir)
    kubeconfig = state.path / "kubeconfig"
    if not kubeconfig.is_file():
        raise PaiError(
            f"cannot read {kubeconfig}: this host has no access to the cluster yet",
            code="kubeconfig-missing",
            remedy=f"run pai-install apply --site {site_dir}",
            exit_code=ExitCode.USAGE,
        )
    _check(kubeconfig)
    kubectl = cached_program(site, "kubectl")
    where = server_words([machine.hostip for machine in site.control_planes], ready) if kubectl else None
    if kubectl is not None and where is not None:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        os.execve(kubectl, ["kubectl", *where, *words], environment)  # noqa: S606 - kubectl takes our place
    from pai_install.cluster.over_ssh import attached_kubectl  # noqa: PLC0415 - not needed on the direct way

    return attached_kubectl(site, state.known_hosts, words, terminal=terminal)


def _check(kubeconfig: Path) -> None:
    """Raises PaiError for a kubeconfig that apply did not write: it may name programs to run, and files to send."""
    try:
        document = load_untrusted_yaml(kubeconfig.read_text(encoding="utf-8"))
        entries = [(row, name) for name in _KEYS for row in rows(child({"it": document}, "it").get(f"{name}s"))]
        is_own = all(set(child(row, name)) <= _KEYS[name] for row, name in entries)
    except (OSError, YAMLError, ValueError):
        is_own = False
    if not is_own:
        raise PaiError(
            f"cannot use {kubeconfig}: apply did not write it. kubectl would run its programs on this host",
            code="kubeconfig-invalid",
            remedy="delete the file, and run pai-install apply, which writes it",
            exit_code=ExitCode.USAGE,
        )


def server_words(addresses: Sequence[str], answers: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Returns additional arguments of kubectl: none if the server of the kubeconfig responds.

    addresses: of the control-plane nodes, the preferred one first. Returns None if none responds on the API's port.
    """
    found = next((address for address in addresses if answers(address)), None)
    if found is None:
        return None
    return () if len(addresses) == 1 else (f"--server=https://{found}:{API_SERVER_PORT}",)


def ready(address: str) -> bool:
    """Returns whether the API server is ready. During its start it accepts connections earlier."""
    # No secret is sent, and kubectl checks the certificate of whom it then talks to.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(f"https://{address}:{API_SERVER_PORT}/readyz", timeout=TIMEOUT_S) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False
