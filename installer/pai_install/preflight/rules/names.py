"""Names and the way out: resolvers, package sources, proxies."""

from __future__ import annotations

from ipaddress import ip_address

from pai_install.preflight.model import Case, Check, Ruling, failed, had, passed, warned

_OWN_FILE = "/etc/resolv.conf"
_RESOLVED_FILE = "/run/systemd/resolve/resolv.conf"
_MOST_SERVERS = 3


def resolvers(case: Case) -> Ruling | None:
    """The resolvers that pods will be given work from inside a pod too."""
    seen = had(case.evidence.names, "names")
    configured = case.site.settings.kubelet_config.get("resolvConf")
    # kubeadm gives the kubelet the file of systemd-resolved where that runs
    path = str(configured) if configured else _RESOLVED_FILE if seen.resolved else _OWN_FILE
    servers = seen.files.get(path, ())
    loops = [server for server in servers if _is_loopback(server)]
    value = f"{path}: {', '.join(servers) or 'no name server'}"
    if loops:
        return failed(
            f"{path} names {', '.join(loops)}, which in a pod is the pod itself: the cluster's DNS would ask itself",
            value=value,
            expected="name servers in the network",
            remedy="write the real name servers into a file on all machines, and kubelet_config: {resolvConf: FILE}"
            " in config.yaml",
        )
    if not servers:
        remedy = f"write a name server into {path} on this machine"
        return warned("pods cannot resolve names outside the cluster", value=value, expected="a name server",
                      remedy=remedy)  # fmt: skip
    if len(servers) > _MOST_SERVERS:
        remedy = "keep the three best"
        return warned("only the first three name servers are used", value=value, expected="3", remedy=remedy)
    return passed("its name servers can be used by pods", value)


def _is_loopback(server: str) -> bool:
    try:
        return ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return False


def package_sources(case: Case) -> Ruling | None:
    """The distribution's packages can be had."""
    seen = had(case.evidence.package_sources, "package_sources")
    if not seen:
        remedy = "write a package source into /etc/apt/sources.list.d on this machine"
        return warned("apt has no package source in the network", expected="one", remedy=remedy)
    bad = {server: why for server, why in seen.items() if why}
    if not bad:
        return passed("the package sources answer", ", ".join(seen))
    value = "; ".join(f"{server}: {why}" for server, why in bad.items())
    remedy = "correct apt's sources on this machine, its proxy (Acquire::http::Proxy) or the way there"
    if len(bad) == len(seen) and not case.evidence.ours:
        return failed("no package source can be reached", value=value, expected="an answer", remedy=remedy)
    return warned("package sources cannot be reached", value=value, expected="an answer", remedy=remedy)


def proxy(case: Case) -> Ruling | None:
    """The proxies of the site answer; a machine behind one is not forgotten."""
    settings = case.site.settings
    wanted = [url for url in (settings.http_proxy, settings.https_proxy) if url]
    unreachable = {server: why for server, why in had(case.evidence.servers, "servers").items() if why}
    if wanted and unreachable:
        value = "; ".join(f"{server}: {why}" for server, why in unreachable.items())
        remedy = "correct http_proxy and https_proxy in config.yaml, or the way there"
        return failed("the site's proxy cannot be reached", value=value, expected="an answer", remedy=remedy)
    own = had(case.evidence.proxies, "proxies")
    general = {where: url for where, url in own.items() if not where.startswith("/etc/apt/")}
    if general and not wanted:
        return warned(
            "the machine uses a proxy, the site names none: images from the internet could not be pulled",
            value="; ".join(f"{where} = {url}" for where, url in general.items()),
            expected="http_proxy and https_proxy in config.yaml",
            remedy="write them into config.yaml; the machines' own addresses are added to no_proxy by itself",
        )
    return passed("the site's proxy answers" if wanted else "no proxy")


CHECKS = (
    Check("resolvers", "Pods are not sent to a resolver on 127.0.0.x", resolvers),
    Check("package-sources", "The package sources (or apt's proxy) answer", package_sources),
    Check("proxy", "The site's proxies answer; a machine behind a proxy has one in the site", proxy),
)
