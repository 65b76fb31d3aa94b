"""Filters for containerd's configuration: pure functions over data, so that no TOML is pasted together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import tomlkit

CRI_IMAGES = "io.containerd.cri.v1.images"
CRI_RUNTIME = "io.containerd.cri.v1.runtime"
CNI_PROGRAMS = "/opt/cni/bin"
CNI_CONFIGURATION = "/etc/pai-install/cni"
# what containerd reads last, where its configuration is made of several files
LAST = "/etc/pai-install/containerd.toml"
# what a container has unless its pod says otherwise
CONTAINER_SPEC = "/etc/pai-install/container.json"
TOOLKIT_CONFIGURATION = "/etc/nvidia-container-runtime/config.toml"


def containerd_patch(settings: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the required settings of containerd's configuration (version 3 or newer).

    settings: sandbox_image, nvidia_path (empty: no NVIDIA runtime), default_runtime, containerd_root (empty:
    unchanged).
    facts: `ansible_facts.pai` of the machine.
    """
    systemd = facts["cgroup_driver"] == "systemd"
    runtime = {"runtime_type": "io.containerd.runc.v2", "base_runtime_spec": CONTAINER_SPEC}
    runtimes: dict[str, Any] = {"runc": {**runtime, "options": {"SystemdCgroup": systemd}}}
    if settings["nvidia_path"]:
        options = {"BinaryName": settings["nvidia_path"], "SystemdCgroup": systemd}
        runtimes["nvidia"] = {**runtime, "options": options}
    root = {"root": settings["containerd_root"]} if settings["containerd_root"] else {}
    return {
        **root,
        "plugins": {
            CRI_IMAGES: {
                # The default is an image at registry.k8s.io, which an air-gapped machine cannot pull.
                "pinned_images": {"sandbox": settings["sandbox_image"]},
                "registry": {"config_path": "/etc/containerd/certs.d"},
            },
            CRI_RUNTIME: {
                # The device plugin names GPUs as CDI devices, which containerd would ignore.
                "enable_cdi": True,
                # without the capability the kernel refuses lower scores and no pod would start
                "restrict_oom_score_adj": not facts["sys_resource"],
                # a folder of our own: containerd would use whatever lies in that of the distribution
                "cni": {"conf_dir": CNI_CONFIGURATION, "conf_template": "", "max_conf_num": 1},
                "containerd": {"default_runtime_name": settings["default_runtime"], "runtimes": runtimes},
            },
        },
    }


def container_spec(text: str) -> str:
    """Returns containerd's specification of containers without NET_RAW, with which a pod writes any source address.

    containerd leaves out the limits and profiles of its own specification, but not those of a file.
    """
    spec = json.loads(text)
    process, linux = spec.get("process", {}), spec.get("linux", {})
    for name, kept in process.get("capabilities", {}).items():
        process["capabilities"][name] = [one for one in kept if one != "CAP_NET_RAW"]
    for part, names in ((process, ("rlimits", "apparmorProfile")), (linux, ("seccomp",))):
        for name in names:
            part.pop(name, None)
    return json.dumps(spec, indent=2, sort_keys=True) + "\n"


def containerd_config(current: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    """Returns the whole configuration file: the current content in the daemon's version, with `patch` merged.

    current: result of pai_containerd_config (text, version). A CRI plugin that Docker's packages disable is enabled,
    because a node needs it.
    """
    text = current["text"] or f"version = {current['version']}\n"
    document = tomlkit.parse(text)
    disabled = document.get("disabled_plugins")
    if disabled is not None:
        kept = [name for name in disabled if name not in ("cri", "io.containerd.grpc.v1.cri", CRI_RUNTIME, CRI_IMAGES)]
        if kept != list(disabled):
            document["disabled_plugins"] = kept
    _merge_table(document, patch)
    _find_cni_programs(document["plugins"][CRI_RUNTIME]["cni"])
    # An imported file wins over the one that imports it, so our settings are imported last.
    imports = [name for name in document.get("imports", ()) if name != LAST]
    if imports and document["imports"] != [*imports, LAST]:
        document["imports"] = [*imports, LAST]
    return tomlkit.dumps(document)


def containerd_last(configuration: str, patch: Mapping[str, Any]) -> str:
    """Returns the file that containerd must read after the `imports` of its configuration, or "" without imports.

    Imported files override the configuration: `nvidia-ctk runtime configure` writes one.
    """
    document = tomlkit.parse(configuration)
    if not document.get("imports"):
        return ""
    return tomlkit.dumps({"version": document["version"], **patch})


def _find_cni_programs(cni: Any) -> None:
    """Our CNI programs come first where the configuration names folders, as distributions' packages do."""
    named = [*cni.get("bin_dirs", ()), *filter(None, [cni.get("bin_dir")])]
    if named and named[0] != CNI_PROGRAMS:
        cni["bin_dirs"] = [CNI_PROGRAMS, *(folder for folder in named if folder != CNI_PROGRAMS)]
    if named and cni.get("bin_dir"):
        cni["bin_dir"] = ""


def _merge_table(table: Any, patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, Mapping):
            if not isinstance(table.get(key), Mapping):
                table[key] = tomlkit.table()
            _merge_table(table[key], value)
        # An equal value keeps its line, with the comment of the administrator beside it.
        elif table.get(key) != value:
            table[key] = value


def toolkit_config(text: str, *, everyone: bool) -> str:
    """Returns the NVIDIA toolkit's whole configuration, with the rule for GPU access merged.

    By default the toolkit trusts the environment of every container, and CUDA images request all GPUs there. The device
    plugin requests GPUs by mounts, which need permission to mount host folders. Raises ValueError if the text is not
    TOML.
    """
    try:
        document = tomlkit.parse(text)
    except ValueError as error:
        raise ValueError(f"{TOOLKIT_CONFIGURATION} is not valid TOML: {error}") from error
    wanted = {
        "accept-nvidia-visible-devices-envvar-when-unprivileged": everyone,
        "accept-nvidia-visible-devices-as-volume-mounts": True,
    }
    _merge_table(document, wanted)
    return tomlkit.dumps(document)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Any]:
        """Filter name -> function."""
        return {
            "container_spec": container_spec,
            "containerd_config": containerd_config,
            "containerd_last": containerd_last,
            "containerd_patch": containerd_patch,
            "toolkit_config": toolkit_config,
        }
