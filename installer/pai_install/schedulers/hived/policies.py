"""What HiveD cannot stand and the API server refuses: pods that crash it, devices that it knows nothing of. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pai_install.schedulers.self_test.model import PLACES
from pai_install.scheduling.admission import (
    RequestKind,
    Rule,
    asks,
    clusters_at,
    in_force,
    literal,
    namespaces_of,
    policy,
    vendors,
)
from pai_install.scheduling.amounts import devices_of
from pai_install.scheduling.job_queue import HIVED_MARKER, HIVED_SCHEDULER, HIVED_SPEC
from pai_install.scheduling.model import PRIORITIES, Scheduling
from pai_install.site.groups import DEFAULT

Object = dict[str, Any]

# what HiveD itself writes when it binds a pod; the last one is what versions before 0.3.4 called the second
_BOUND = "hivedscheduler.microsoft.com/pod-bind-info"
_ISOLATION = ("hivedscheduler.microsoft.com/pod-leaf-cell-isolation", "hivedscheduler.microsoft.com/pod-gpu-isolation")
_VISIBLE = ("NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES")
# values that show no device
_NOTHING = ("", "none", "void")

_POD = RequestKind("", "v1", "pods")

_KEYS = ("virtualCluster", "priority", "ignoreK8sSuggestedNodes", "affinityGroup", " name")
# as OpenPAI's rest-server writes it
_NO_GANG = "(?m)^affinityGroup: null$"
_GANG_OF_OPENPAI = r"""(?m)^ +name: ['"]?[^.'"~]+~[^'"]*['"]?$"""
# HiveD makes a list of all pods and cells of a gang
_COUNTS = "podNumber|leafCellNumber|gpuNumber"
_COUNT = rf"^ *(- )?({_COUNTS}): [0-9]{{1,4}}$"
_NUMBER = r"(?m)^priority: -?[0-9]+$"
# each line is a key, or an item of a list; quotes end on their line; no other document, flow or escape
_BEGIN = r"^([A-Za-z0-9]+:( .*)?| +(- )?[A-Za-z0-9]+:( .*)?| *(#.*)?)$"
_LINE = r"""^([^'"{}\[\]]*| *(- )?[A-Za-z0-9]+: ('[^'\\]*'|"[^"\\]*"))$"""
_PLAIN = (
    f"variables.spec.split('\\n').all(l, l.matches({literal(_BEGIN)}) && l.matches({literal(_LINE)})) && "
    f"{literal(list(_KEYS))}.all(k, variables.spec.split(k + ':').size() <= 2) && "
    f"(!variables.spec.contains('priority:') || variables.spec.matches({literal(_NUMBER)}))"
)


def policies(scheduling: Scheduling) -> Iterator[Object]:
    """Those on pods of HiveD count everywhere: one anywhere could crash it. Those on devices, where groups submit."""
    yield from in_force(_pods(scheduling), None)
    if namespaces := namespaces_of(scheduling):
        yield from in_force(_devices(scheduling), namespaces)


def _pods(scheduling: Scheduling) -> Object:
    at = {place: [cluster.name for cluster in clusters] for place, clusters in clusters_at(scheduling).items()}
    variables = {
        "marked": asks("object.spec", (HIVED_MARKER,)),
        "scheduler": "has(object.spec.schedulerName) ? object.spec.schedulerName : ''",
        "ours": f"variables.scheduler.startsWith({literal(HIVED_SCHEDULER)})",
        "cluster": f"variables.scheduler.replace({literal(HIVED_SCHEDULER)}, '')",
        "notes": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
        "spec": f"{literal(HIVED_SPEC)} in variables.notes ? variables.notes[{literal(HIVED_SPEC)}] : ''",
        # an administrator alone can make a namespace of that name
        "tries": f"request.namespace.startsWith({literal(f'{PLACES}-')})",
        "clusters": (
            f"variables.tries ? {literal([cluster.name for cluster in scheduling.clusters])} : "
            f"request.namespace in {literal(at)} ? {literal(at)}[request.namespace] : []"
        ),
        "highest": literal({cluster.name: PRIORITIES[cluster.highest] for cluster in scheduling.clusters}),
        "priority": (
            f"variables.spec.matches({literal(_NUMBER)}) ? "
            f"int(variables.spec.find({literal(_NUMBER)}).find('-?[0-9]+$')) : 0"
        ),
    }
    return policy("pai-hived-pods", _POD, (*_shape(), *_content()), variables)


def _shape() -> Iterator[Rule]:
    """What lets a pod past HiveD, or crashes it."""
    yield Rule(
        "variables.marked == variables.ours",
        f"'a pod of HiveD has the limit {HIVED_MARKER}: 1 and a schedulerName {HIVED_SCHEDULER}NAME, "
        "any other has neither'",
    )
    yield Rule(
        "!variables.marked || !has(object.spec.nodeName) || object.spec.nodeName == ''",
        "'a pod of HiveD may not choose its node by nodeName: HiveD does not survive it'",
    )
    bound = literal([_BOUND, *_ISOLATION])
    yield Rule(
        f"!variables.marked || !{bound}.exists(a, a in variables.notes)",
        "'which devices a pod has is written by HiveD when it binds it'",
    )


def _content() -> Iterator[Rule]:
    """What the annotation says. It is read as text, so it has to be such that HiveD cannot read anything else."""
    yield Rule(
        "!variables.ours || variables.cluster in variables.clusters",
        "'the virtual cluster ' + variables.cluster + ' is not this namespace\\'s; it may use ' + "
        "variables.clusters.join(', ')",
    )
    yield Rule(
        f"!variables.ours || ({_PLAIN})",
        f"'the annotation {HIVED_SPEC} is to be plain lines of YAML, each key once'",
    )
    quote = "['\"]?"
    yield Rule(
        f"!variables.ours || variables.spec.matches({literal(f'(?m)^virtualCluster: {quote}')} + variables.cluster + "
        f"{literal(f'{quote}$')})",
        f"'the annotation {HIVED_SPEC} needs the line virtualCluster: ' + variables.cluster",
    )
    yield Rule(
        f"!variables.ours || variables.spec.matches({literal('(?m)^ignoreK8sSuggestedNodes: false$')})",
        f"'the annotation {HIVED_SPEC} needs the line ignoreK8sSuggestedNodes: false, or HiveD binds pods to nodes "
        "that refuse them'",
    )
    yield Rule(
        f"!variables.ours || variables.spec.split('\\n').all(l, !l.matches({literal(f'({_COUNTS})')}) || "
        f"l.matches({literal(_COUNT)}))",
        f"'numbers of pods and cells in the annotation {HIVED_SPEC} have at most four digits'",
    )
    yield _gang()
    yield Rule(
        "!variables.ours || !(variables.cluster in variables.highest) || "
        "variables.priority <= variables.highest[variables.cluster]",
        "'the priority ' + string(variables.priority) + ' is above the highest of ' + variables.cluster + ', ' + "
        "string(variables.highest[variables.cluster])",
    )


def _gang() -> Rule:
    """HiveD gives a pod a free place of the gang that it names, without a look at its virtual cluster."""
    own = f"variables.spec.matches({literal('(?m)^ +name: ')} + request.namespace + {literal('[.][-.a-zA-Z0-9_/]+$')})"
    # OpenPAI's rest-server has one namespace, and its names are USER~JOB/GROUP
    of_openpai = f"(request.namespace == {literal(DEFAULT)} && variables.spec.matches({literal(_GANG_OF_OPENPAI)}))"
    none = f"!variables.spec.contains('affinityGroup') || variables.spec.matches({literal(_NO_GANG)})"
    return Rule(
        f"!variables.ours || {none} || {own} || {of_openpai}",
        "'the name of an affinityGroup of this namespace begins with ' + request.namespace + '.'",
    )


def _devices(scheduling: Scheduling) -> Object:
    """Devices that HiveD did not give: asked for from Kubernetes, or named to the container runtime."""
    variables = {"asks": asks("object.spec", vendors(devices_of(scheduling)))}
    rules = (
        Rule("!variables.asks", "'devices are given by HiveD here: ask for them in a pod of HiveD'"),
        *(_visible(containers) for containers in ("containers", "initContainers")),
    )
    return policy("pai-hived-devices", _POD, rules, variables)


def _visible(containers: str) -> Rule:
    paths = literal([f"metadata.annotations['{name}']" for name in _ISOLATION])
    given = f"(has(e.valueFrom) && has(e.valueFrom.fieldRef) && e.valueFrom.fieldRef.fieldPath in {paths})"
    nothing = f"(!has(e.valueFrom) && (!has(e.value) || e.value in {literal(list(_NOTHING))}))"
    names = literal(list(_VISIBLE))
    return Rule(
        f"!has(object.spec.{containers}) || object.spec.{containers}.all(c, !has(c.env) || "
        f"c.env.all(e, !(e.name in {names}) || {given} || {nothing}))",
        f"'{' and '.join(_VISIBLE)} may only be the fieldRef to the annotation that HiveD writes'",
    )
