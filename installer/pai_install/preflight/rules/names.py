"""Name resolution and outbound access: resolvers, package sources, proxies."""

from __future__ import annotations

from ipaddress import ip_address

from pai_install.checks.result import Result, failed, passed, warned
from pai_install.preflight.model import Case, machine_check

_OWN_FILE = "/etc/resolv.conf"
_RESOLVED_FILE = "/run/systemd/resolve/resolv.conf"


@machine_check(
    id="resolvers",
    title="The resolver of pods is not on 127.0.0.x",
    reads="names: the kubelet's resolver file for pods",
    rule="FAIL for a loopback address. WARN for none, or more than resolvers-most",
    limits=("resolvers-most",),
    source="Kubernetes",
    remedy="write the real name servers to a file on all machines, and set kubelet_config: {resolvConf: FILE} in "
    "config.yaml",
)
def resolvers(case: Case) -> Result | None:
    """The resolvers that pods will be given work from inside a pod too."""
    seen = case.evidence.names
    configured = case.site.settings.kubelet_config.get("resolvConf")
    # kubeadm gives the kubelet the file of systemd-resolved where that runs
    path = str(configured) if configured else _RESOLVED_FILE if seen.resolved else _OWN_FILE
    servers = seen.files.get(path, ())
    loops = [server for server in servers if _is_loopback(server)]
    value = f"{path}: {', '.join(servers) or 'no name server'}"
    if loops:
        return failed(
            f"{path} has {', '.join(loops)}, which is the pod itself inside a pod: CoreDNS would query itself",
            value=value,
            expected="name servers in the network",
        )
    if not servers:
        remedy = f"write a name server into {path} on this machine"
        return warned("pods cannot resolve names outside the cluster", value=value, expected="a name server",
                      remedy=remedy)  # fmt: skip
    most = case.limit("resolvers-most")
    if len(servers) > most:
        message = "only the first three name servers are used"
        return warned(message, value=value, expected=f"{most:g}", remedy="keep the best three")
    return passed(value, message="pods can use the machine's name servers")


def _is_loopback(server: str) -> bool:
    try:
        return ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False


@machine_check(
    id="package-sources",
    title="apt's package sources (or proxy) answer",
    reads="package_sources: a connection to each server of apt's sources, and package_refusals: apt's errors about "
    "their release files, which it fetches to a temporary folder",
    rule="FAIL when none answers, or apt rejects one. WARN when one does not answer, or none is configured",
    remedy="correct apt's sources on this machine, its proxy (Acquire::http::Proxy) or the route to them",
)
def package_sources(case: Case) -> Result | None:
    """The distribution's packages can be installed."""
    seen = case.evidence.package_sources
    if not seen:
        remedy = "add a package source to /etc/apt/sources.list.d on this machine"
        return warned("apt has no package source on the network", expected="one", remedy=remedy)
    bad = {server: why for server, why in seen.items() if why}
    # without apt's answer nothing passes; a server that does not answer speaks for itself
    refused = case.evidence.package_refusals if not bad or case.evidence.has("package_refusals") else ()
    if refused:
        message = "apt rejects a package source and cannot install packages"
        judge = warned if case.evidence.installed else failed
        remedy = "correct or remove this source in /etc/apt/sources.list.d on this machine, or renew its key"
        return judge(message, value="; ".join(refused), expected="no error of apt-get update", remedy=remedy)
    if not bad:
        return passed(", ".join(seen), message="the package sources answer")
    value = "; ".join(f"{server}: {why}" for server, why in bad.items())
    if len(bad) == len(seen) and not case.evidence.installed:
        return failed("cannot reach any package source", value=value, expected="an answer")
    return warned("cannot reach some package sources", value=value, expected="an answer")


@machine_check(
    id="proxy",
    title="The proxies of the site answer, and machines use no other proxy",
    reads="servers: a connection to the site's proxies, and variables and files with a proxy",
    rule="FAIL when the site's proxy does not answer. WARN when only the machine has a proxy",
    remedy="correct http_proxy and https_proxy in config.yaml, or the route to the proxy",
)
def proxy(case: Case) -> Result | None:
    """Checks that the site's proxies respond, and that the site has the proxy that a machine uses."""
    settings = case.site.settings
    wanted = [url for url in (settings.http_proxy, settings.https_proxy) if url]
    unreachable = {server: why for server, why in case.evidence.servers.items() if why}
    if wanted and unreachable:
        value = "; ".join(f"{server}: {why}" for server, why in unreachable.items())
        return failed("cannot reach the site's proxy", value=value, expected="an answer")
    own = case.evidence.proxies
    general = {where: url for where, url in own.items() if not where.startswith("/etc/apt/")}
    if general and not wanted:
        return warned(
            "the machine uses a proxy, but the site has none: image pulls from the internet would fail",
            value="; ".join(f"{where} = {url}" for where, url in general.items()),
            expected="http_proxy and https_proxy in config.yaml",
            remedy="set the proxy in config.yaml. pai-install adds the machines' addresses to no_proxy",
        )
    return passed(message="the site's proxy answers" if wanted else "no proxy")
