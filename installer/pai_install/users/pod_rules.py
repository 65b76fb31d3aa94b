"""Admission rules for pods of users: no data of another group, and no power over the machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.registry.pull_secrets import NAME as PULL_SECRET
from pai_install.scheduling.admission import Rule, literal
from pai_install.scheduling.pod_limits import CAPABILITIES, VOLUMES

# annotations of Kubernetes before 1.30, which it still obeys: one per container
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SELINUX = ("container_t", "container_init_t", "container_kvm_t", "container_engine_t")
# https://kubernetes.io/docs/concepts/security/pod-security-standards/
_SYSCTLS = (
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
)


def pod_rules() -> Iterator[Rule]:
    """The rules of all kinds. They use the variables `specs`, `templates`, `containers`, `contexts`, and `volumes`."""
    sources = " || ".join(f"has(v.{name})" for name in VOLUMES)
    yield Rule(
        f"variables.volumes.all(vs, vs.all(v, {sources}))",
        f"'volumes of users are {', '.join(VOLUMES)}: ask for a storage by its claim'",
    )
    yield Rule(
        "variables.specs.all(s, (!has(s.hostNetwork) || !s.hostNetwork) && (!has(s.hostPID) || !s.hostPID) && "
        "(!has(s.hostIPC) || !s.hostIPC)) && variables.containers.all(cs, cs.all(c, !has(c.ports) || "
        "c.ports.all(p, !has(p.hostPort) || p.hostPort == 0)))",
        "'pods of users have no hostNetwork, hostPID, hostIPC and hostPort'",
    )
    allowed = literal(list(CAPABILITIES))
    context = "c.securityContext"
    yield Rule(
        f"variables.containers.all(cs, cs.all(c, !has({context}) || ("
        f"(!has({context}.privileged) || !{context}.privileged) && "
        f"(!has({context}.procMount) || {context}.procMount == 'Default') && "
        f"(!has({context}.capabilities) || !has({context}.capabilities.add) || "
        f"{context}.capabilities.add.all(name, name in {allowed})))))",
        f"'containers of users are not privileged, and add no other capabilities than {', '.join(CAPABILITIES)}'",
    )
    yield Rule(
        # Another account of the namespace may have rights of its own, such as Volcano's.
        "variables.specs.all(s, (!has(s.serviceAccountName) || s.serviceAccountName in ['', 'default']) && "
        "(!has(s.serviceAccount) || s.serviceAccount in ['', 'default']))",
        "'pods of users run as the service account default'",
    )
    yield from _confinement()
    yield from _secret_rules()


def _confinement() -> Iterator[Rule]:
    """Pod Security's profile baseline, for what the rules above leave out."""
    type_of = "has(c.appArmorProfile) && has(c.appArmorProfile.type) && c.appArmorProfile.type == 'Unconfined'"
    notes = "t.metadata.annotations"
    yield Rule(
        f"variables.contexts.all(cs, !cs.exists(c, {type_of})) && variables.templates.all(t, !has(t.metadata) || "
        f"!has({notes}) || !{notes}.exists(k, k.startsWith({literal(_APPARMOR)}) && {notes}[k] == 'unconfined'))",
        "'containers of users have the AppArmor profile of the runtime: remove Unconfined'",
    )
    selinux = " && ".join(
        f"(!has(c.seLinuxOptions.{name}) || c.seLinuxOptions.{name} in {literal(values)})"
        for name, values in (("user", [""]), ("role", [""]), ("type", ["", *_SELINUX]))
    )
    yield Rule(
        f"variables.contexts.all(cs, cs.all(c, !has(c.seLinuxOptions) || ({selinux})))",
        "'containers of users have the SELinux type of containers: remove user, role, and type'",
    )
    yield Rule(
        "variables.contexts.all(cs, cs.all(c, !has(c.sysctls) || "
        f"c.sysctls.all(s, s.name in {literal(list(_SYSCTLS))})))",
        "'pods of users set no sysctls but those that Kubernetes calls safe'",
    )
    yield Rule(
        "variables.specs.all(s, !has(s.resourceClaims) || size(s.resourceClaims) == 0)",
        "'no queue counts devices of a ResourceClaim: ask for them in resources.limits'",
    )


def _secret_rules() -> Iterator[Rule]:
    """Yields the rules that a pod uses only Secrets of its user. Other Secrets hold keys of others or of storages."""
    message = "'Secrets that your pods name are yours: their names begin with ' + variables.user + '.'"
    yield Rule(
        f"variables.volumes.all(vs, vs.all(v, (!has(v.secret) || !has(v.secret.secretName) || "
        f"{own_secret('v.secret.secretName')}) && (!has(v.projected) || !has(v.projected.sources) || "
        f"v.projected.sources.all(s, !has(s.secret) || {_named('s.secret')}))))",
        message,
    )
    yield Rule(
        "variables.containers.all(cs, cs.all(c, (!has(c.env) || c.env.all(e, !has(e.valueFrom) || "
        f"!has(e.valueFrom.secretKeyRef) || {_named('e.valueFrom.secretKeyRef')})) && (!has(c.envFrom) || "
        f"c.envFrom.all(e, !has(e.secretRef) || {_named('e.secretRef')}))))",
        message,
    )
    yield Rule(
        "variables.specs.all(s, !has(s.imagePullSecrets) || s.imagePullSecrets.all(i, "
        f"has(i.name) && (i.name == {literal(PULL_SECRET)} || {own_secret('i.name')})))",
        message,
    )


def own_secret(name: str) -> str:
    """An expression: whether a Secret of this name is the user's."""
    return f"(!variables.user.contains('.') && {name}.startsWith(variables.user + '.'))"


def _named(reference: str) -> str:
    return f"(has({reference}.name) && {own_secret(f'{reference}.name')})"
