"""Kubelet settings that override pai-install's defaults: permitted, with a warning."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.documents.document import Document, Text
from pai_install.documents.problem import YamlPath, dotted

# where, the only value that is not weaker, and what the other ones mean; numbers of the CIS benchmark
_WEAKER: dict[YamlPath, tuple[str, str]] = {
    ("kubelet_custom_flags", "anonymous-auth"): ("false", "anybody may ask the kubelet (CIS 4.2.1)"),
    ("kubelet_custom_flags", "authorization-mode"): ("webhook", "the kubelet asks no one what is allowed (CIS 4.2.2)"),
    ("kubelet_custom_flags", "read-only-port"): ("0", "anybody may read the kubelet's answers (CIS 4.2.4)"),
    ("kubelet_config", "authentication", "anonymous", "enabled"): ("false", "anybody may ask the kubelet (CIS 4.2.1)"),
    ("kubelet_config", "authorization", "mode"): ("webhook", "the kubelet asks no one what is allowed (CIS 4.2.2)"),
    ("kubelet_config", "readOnlyPort"): ("0", "anybody may read the kubelet's answers (CIS 4.2.4)"),
}


def check_kubelet(config: Document) -> None:
    """Warns of every setting that makes the kubelet weaker."""
    for path, meaning in _weaker(config):
        config.add(path, "site.weaker", meaning, f"remove {dotted(path)}", severity="warning")


def _weaker(config: Document) -> Iterator[tuple[YamlPath, str]]:
    for path, (safe, meaning) in _WEAKER.items():
        value = config.at(path)
        if isinstance(value, Text) and value.strip().lower() != safe:
            yield path, meaning
