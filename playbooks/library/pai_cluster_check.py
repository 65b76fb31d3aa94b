#!/usr/bin/python
"""Ansible module: does the cluster work, seen from pods on its machines?"""

from __future__ import annotations

DOCUMENTATION = r"""
module: pai_cluster_check
short_description: Check nodes, system pods, DNS, services and the API from pods on every machine
description:
  - Starts a small pod on every node, tests DNS, the API, and a Service on another node from it, and removes the pods.
  - Returns findings. A failed check never fails the task.
options:
  version: {description: Kubernetes version of all nodes., type: str, required: true}
  nodes: {description: Names of the required nodes., type: list, elements: str, required: true}
  image: {description: An image with busybox., type: str, required: true}
  namespaces:
    description: Namespaces with pods that must run.
    type: list
    elements: str
    default:
      - kube-system
      - kube-flannel
      - pai-docker-cache
      - pai-volumes
      - pai-hived
      - pai-jobset
      - pai-logs
      - pai-monitoring
      - pai-volcano
      - pai-console
      - pai-training-operator
      - pai-kueue
  peer:
    description: Another node with a Service for a single entry of I(nodes). It is not checked itself.
    type: str
    default: ""
  runtime_class_nodes:
    description: Nodes to try RuntimeClass nvidia on. The module waits up to 30 seconds until they offer GPUs.
    type: list
    elements: str
    default: []
  most:
    description: Limit of nodes with test pods. On larger clusters, test pods run on an even sample, which is reported.
    type: int
    default: 64
  timeout: {description: Seconds until everything must run., type: int, default: 180}
author: [pai-install]
"""
EXAMPLES = r"""
- name: Check the cluster
  pai_cluster_check: {version: 1.36.3, nodes: [worker-1], image: "registry.pai.internal/busybox@sha256:..."}
"""
RETURN = r"""
findings: {description: One verdict per check and subject., type: list, elements: dict, returned: always}
"""

import concurrent.futures
import json
import time
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.pai_cluster_state import (
    SYSTEM_NAMESPACES,
    child,
    has_no_image,
    judge_node,
    judge_pods,
    node_facts,
    pod_facts,
    pod_is_well,
    text,
)
from ansible.module_utils.pai_finding import finding
from ansible.module_utils.pai_kubectl import Kubectl, KubectlError

NAMESPACE = "pai-install-verify"
PORT = 8080
# a store that has just started answers the kubelet's next attempt
NO_IMAGE_S = 45
# who found no API server asks again within a minute: client-go's longest pause of 30 s, and as much again by chance
ENDPOINTS_S = 75
# after its start a device plugin registers, and the kubelet reports its devices with its next status, every 10 s
DEVICES_S = 30
# pods are started on so many nodes at most
MOST_NODES = 64
# a static busybox cannot resolve names for wget; nc takes addresses
GET = r"printf 'GET / HTTP/1.0\r\n\r\n' | busybox nc -w 5 {host} {port}"
DNS_NAME = "kubernetes.default.svc.cluster.local"


def pod(name: str, node: str, image: str, runtime_class: str = "") -> dict[str, Any]:
    """A pod on one node that serves one word."""
    serve = f"mkdir /tmp/www && echo {name} >/tmp/www/index.html && exec busybox httpd -f -p {PORT} -h /tmp/www"
    spec: dict[str, Any] = {
        "nodeName": node,
        # busybox httpd as the first process of a container ignores SIGTERM, and would cost the full grace period.
        "terminationGracePeriodSeconds": 0,
        # Nodes with taints are proven, too.
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {
                "name": "busybox",
                "image": image,
                "command": ["/bin/busybox", "sh", "-c", serve],
                "ports": [{"containerPort": PORT}],
                # Only a ready pod becomes an endpoint of its Service.
                "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
            }
        ],
    }
    if runtime_class:
        spec["runtimeClassName"] = runtime_class
    labels = {"pai-install/verify": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def service(name: str) -> dict[str, Any]:
    """The Service of one pod."""
    spec = {"selector": {"pai-install/verify": name}, "ports": [{"port": 80, "targetPort": PORT}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def objects(nodes: list[str], image: str, runtime_class_nodes: list[str]) -> list[dict[str, Any]]:
    """Everything one check makes: names count the nodes, since node names may be too long for a Service."""
    # a static busybox resolves no names: it asks by the Services' addresses, which are known before the pods run
    found = [service(f"node-{index}") for index in range(len(nodes))]
    for index, node in enumerate(nodes):
        found.append(pod(f"node-{index}", node, image))
        if node in runtime_class_nodes:
            found.append(pod(f"nvidia-{index}", node, image, "nvidia"))
    return found


def ring(count: int) -> dict[int, int]:
    """Returns the index of the Service that each node requests: on another node if there are two."""
    # Each node asks and is asked once. All pairs would be a thousand times as many on a large cluster.
    return {index: (index + 1) % count for index in range(count)}


def sampled(nodes: list[str], most: int) -> list[str]:
    """As many of the nodes as may carry pods, spread evenly: neighbours in the list often share a rack."""
    if len(nodes) <= most:
        return nodes
    return [nodes[number * len(nodes) // most] for number in range(most)]


def with_peer(nodes: list[str], peer: str) -> list[str]:
    """The nodes that pods are placed on: a single node needs another one to prove the way between machines."""
    return [*nodes, peer] if peer and len(nodes) == 1 and peer not in nodes else nodes


class ClusterCheck:
    """The checks, through kubectl."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.nodes: list[str] = module.params["nodes"]
        self.carrying = sampled(self.nodes, module.params.get("most", MOST_NODES))
        self.placed = with_peer(self.carrying, module.params["peer"])
        self.deadline = time.monotonic() + module.params["timeout"]
        self.addresses: dict[str, str] = {}
        self.client = Kubectl()

    def kubectl(self, *words: str, data: str | None = None) -> tuple[int, str]:
        """Returns status and output."""
        answer = self.client.run(*words, data=data)
        return answer.status, answer.message

    def items(self, *words: str) -> list[dict[str, Any]]:
        """Returns the objects, or [] if the API server does not respond."""
        try:
            return self.client.items(*words)
        except KubectlError:
            return []

    def check_nodes(self) -> list[dict[str, str]]:
        """Every node Ready, at the version of the plan."""
        missing = set(self.nodes)
        seen: dict[str, dict[str, Any]] = {}
        while missing and time.monotonic() < self.deadline:
            seen = {node["name"]: node for node in map(node_facts, self.items("nodes"))}
            missing = {name for name in self.nodes if seen.get(name, {}).get("ready") is not True}
            if missing:
                time.sleep(1)
        return [judge_node(name, seen.get(name), self.module.params["version"]) for name in self.nodes]

    def wait_for_devices(self) -> None:
        """Returns once each node with GPUs offers some, or the time is up. The health check gives the verdict."""
        end = min(self.deadline, time.monotonic() + DEVICES_S)
        wanted = set(self.nodes) & set(self.module.params["runtime_class_nodes"])
        while wanted and time.monotonic() < end:
            if wanted <= {text(child(node, "metadata").get("name")) for node in self.items("nodes") if has_gpus(node)}:
                return
            time.sleep(1)

    def check_system_pods(self) -> list[dict[str, str]]:
        """Checks that every system pod is Running and ready. Pods with missing images fail before the timeout."""
        pods: list[dict[str, Any]] = []
        hope = time.monotonic()
        while time.monotonic() < min(self.deadline, hope + NO_IMAGE_S):
            namespaces = self.module.params["namespaces"]
            parts = [self.items(f"--namespace={namespace}", "pods") for namespace in namespaces]
            found = [pod_facts(entry) for part in parts for entry in part]
            # With --limit, pods of other machines do not count. A pod without a node may be meant for one of these.
            pods = [pod for pod in found if pod["node"] in ("", *self.nodes)]
            ill = [pod for pod in pods if not pod_is_well(pod)]
            if pods and not ill:
                break
            # Waiting seldom helps a pod without an image. Any other pod may still become ready.
            if not ill or not all(map(has_no_image, ill)):
                hope = time.monotonic()
            time.sleep(1)
        return judge_pods(pods)

    def sample_findings(self) -> list[dict[str, str]]:
        """Returns a finding if test pods run on only some nodes."""
        if len(self.carrying) == len(self.nodes):
            return []
        message = f"pods were started on {len(self.carrying)} of {len(self.nodes)} nodes"
        return [
            finding(
                "verify-sample", "SKIP", "cluster", message, remedy="run verify --limit MACHINES to test other machines"
            )
        ]

    def check_from_pods(self) -> list[dict[str, str]]:
        """Returns findings on DNS, the API, and a Service on another node, from a pod on every node."""
        # A namespace that is being deleted refuses new objects.
        self.wait_for_removal()
        status, output = self.make_namespace()
        wanted = objects(self.placed, self.module.params["image"], self.module.params["runtime_class_nodes"])
        if status == 0:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted})
            status, output = self.kubectl(f"--namespace={NAMESPACE}", "apply", "--filename=-", data=text)
        if status != 0:
            remedy = "read the logs of kube-controller-manager and kube-apiserver in namespace kube-system"
            return [
                finding(
                    "pod-network", "FAIL", "cluster", "cannot create the test pods", value=output[-300:], remedy=remedy
                )
            ]
        pods = self.wait_for_pods([entry["metadata"]["name"] for entry in wanted if entry["kind"] == "Pod"])
        # A request to a Service without endpoints is refused, which would look like a broken network.
        self.wait_for_endpoints({name for name in pods if name.startswith("node-") and runs(pods, name)})
        self.addresses = addresses(self.items(f"--namespace={NAMESPACE}", "services"))
        # All of these kubectl processes run on one control plane, so only a few run at a time.
        with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
            lists = list(pool.map(lambda index: self.check_node_pods(index, pods), range(len(self.carrying))))
        return [entry for found in lists for entry in found]

    def make_namespace(self) -> tuple[int, str]:
        """Creates a namespace, and returns status and output when pods can be created in it.

        The controller manager creates the service account of the pods. After a restart it first waits for the lease of
        its predecessor.
        """
        status, output = self.kubectl("create", "namespace", NAMESPACE)
        if status != 0:
            return status, output
        timeout = f"--timeout={max(1, int(self.deadline - time.monotonic()))}s"
        return self.kubectl(f"--namespace={NAMESPACE}", "wait", "--for=create", "serviceaccount/default", timeout)

    def wait_for_pods(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """name -> pod, once all are ready or the time is up."""
        pods: dict[str, dict[str, Any]] = {}
        while time.monotonic() < self.deadline:
            pods = {pod["name"]: pod for pod in map(pod_facts, self.items(f"--namespace={NAMESPACE}", "pods"))}
            if all(runs(pods, name) for name in names):
                break
            time.sleep(0.5)
        return pods

    def wait_for_endpoints(self, services: set[str]) -> None:
        """Returns once each of these Services leads to its pod, or the time is up.

        A controller manager that was restarted names no endpoints before the lease of its predecessor has ended, and
        the kubelet waits longer each time before it starts one again that found no API.
        """
        while time.monotonic() < self.deadline:
            if services <= with_endpoints(self.items(f"--namespace={NAMESPACE}", "endpointslices")):
                return
            time.sleep(0.5)

    def check_node_pods(self, index: int, pods: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
        """Returns the findings of one node."""
        node, name = self.carrying[index], f"node-{index}"
        if not runs(pods, name):
            why = pod_failure(pods, name)
            return [finding("pod-start", "FAIL", node, "the test pod does not start", value=why, expected="Running")]
        other = ring(len(self.placed))[index]
        where = self.placed[other] if other != index else "this machine, the only one"
        # not by the pod's environment: a kubelet that has just found the API again does not know new Services yet
        fetch = GET.format(host=self.addresses.get(f"node-{other}", ""), port="80")
        # the API server answers a request without TLS with a refusal of its own
        connect = GET.format(host="$KUBERNETES_SERVICE_HOST", port="$KUBERNETES_SERVICE_PORT")
        requests = (
            ("cluster-dns", "the cluster's DNS", ["nslookup", DNS_NAME], "Address"),
            ("service", f"a Service on {where}", ["sh", "-c", fetch], f"node-{other}"),
            ("api", "the API", ["sh", "-c", connect], "HTTPS server"),
        )
        found = [self.request(node, name, *request) for request in requests]
        if node in self.module.params["runtime_class_nodes"]:
            well = runs(pods, f"nvidia-{index}")
            message = "a pod of RuntimeClass nvidia runs" if well else "no pod of RuntimeClass nvidia runs"
            why = "" if well else pod_failure(pods, f"nvidia-{index}")
            found.append(finding("runtime-class-nvidia", "PASS" if well else "FAIL", node, message, value=why))
        return found

    def request(self, node: str, name: str, check: str, subject: str, argv: list[str], word: str) -> dict[str, str]:
        """Returns the finding on one request from inside a pod. Retries until the node must know the new endpoints.

        Until then the address of a Service leads out of the cluster, where another server may answer.
        """
        end = time.monotonic() + ENDPOINTS_S
        output = ""
        while time.monotonic() < end:
            status, output = self.kubectl(f"--namespace={NAMESPACE}", "exec", name, "--", "/bin/busybox", *argv)
            if status == 0 and word in output:
                return finding(check, "PASS", node, f"{subject} answers")
            time.sleep(1)
        remedy = "run kubectl -n kube-flannel logs daemonset/kube-flannel. UDP port 8472 must be open between machines"
        return finding(check, "FAIL", node, f"{subject} does not answer", value=output[-300:], remedy=remedy)

    def remove(self) -> None:
        """Takes everything away again: the pods at once, the empty namespace goes by itself some seconds later."""
        self.kubectl(f"--namespace={NAMESPACE}", "delete", "pods", "--all", "--wait=true", "--timeout=60s")
        self.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")

    def wait_for_removal(self) -> None:
        """The namespace of a check that has just ended, or that was interrupted, is gone."""
        self.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=true", "--timeout=60s")

    def all(self) -> list[dict[str, str]]:
        """Returns the findings of all checks. Pod checks run only with nodes."""
        found = self.check_nodes() + self.check_system_pods() + self.sample_findings()
        try:
            found += self.check_from_pods()
            # A health check right after a join would find no GPUs on new nodes.
            self.wait_for_devices()
            return found
        finally:
            self.remove()


def has_gpus(node: dict[str, Any]) -> bool:
    """Returns whether pods can get GPUs there: whole ones, or slices (MIG)."""
    return any(name.startswith("nvidia.com/") for name in child(node, "status", "allocatable"))


def addresses(services: list[dict[str, Any]]) -> dict[str, str]:
    """Service -> its address in the cluster."""
    return {entry["metadata"]["name"]: entry["spec"].get("clusterIP", "") for entry in services}


def with_endpoints(slices: list[dict[str, Any]]) -> set[str]:
    """The Services that lead to a pod which is ready, by their EndpointSlices."""
    return {
        entry["metadata"]["labels"]["kubernetes.io/service-name"]
        for entry in slices
        if any(endpoint.get("conditions", {}).get("ready") for endpoint in entry.get("endpoints") or [])
    }


def runs(pods: dict[str, dict[str, Any]], name: str) -> bool:
    """Whether the pod of that name is there and well."""
    return name in pods and pod_is_well(pods[name])


def pod_failure(pods: dict[str, dict[str, Any]], name: str) -> str:
    """The words of a pod that does not run."""
    pod = pods.get(name)
    return "; ".join(word for word in (pod["phase"], pod["why"]) if word)[:400] if pod else "not there"


def main() -> None:
    """Runs the module."""
    module = AnsibleModule(
        argument_spec={
            "version": {"type": "str", "required": True},
            "nodes": {"type": "list", "elements": "str", "required": True},
            "image": {"type": "str", "required": True},
            "namespaces": {"type": "list", "elements": "str", "default": list(SYSTEM_NAMESPACES)},
            "peer": {"type": "str", "default": ""},
            "runtime_class_nodes": {"type": "list", "elements": "str", "default": []},
            "most": {"type": "int", "default": MOST_NODES},
            "timeout": {"type": "int", "default": 180},
        },
        supports_check_mode=True,
    )
    module.exit_json(changed=False, findings=[] if module.check_mode else ClusterCheck(module).all())


if __name__ == "__main__":
    main()
