"""Every image is there under its tag, by its digest and pinned, whatever was there before."""

from __future__ import annotations

from testinfra.host import Host

PINNED = "io.cri-containerd.pinned=pinned"


def images(host: Host) -> dict[str, list[str]]:
    """Name -> the columns of `ctr images ls`."""
    lines = host.check_output("ctr --namespace k8s.io images ls").splitlines()[1:]
    return {line.split()[0]: line.split() for line in lines}


def test_images_are_held_by_digest_and_pinned(host: Host) -> None:
    held = images(host)
    wanted = host.ansible.get_variables()["system_images_images"]
    assert wanted
    for image in wanted:
        for name in (image["name"], f"{image['name'].split(':')[0]}@{image['digest']}"):
            assert held[name][2] == image["digest"]
        assert PINNED in held[f"pai-install:{image['name']}@{image['digest']}"][-1]


def test_kubelet_sees_them_and_leaves_them(host: Host) -> None:
    for image in host.ansible.get_variables()["system_images_images"]:
        for name in (image["name"], f"{image['name']}@{image['digest']}"):
            assert '"pinned": true' in host.check_output(f"crictl inspecti --output json {name}")


def test_image_of_an_earlier_version_may_be_collected_and_the_admins_may_not(host: Host) -> None:
    held = images(host)
    (old,) = [name for name in held if name.endswith("-old")]
    assert "pinned" not in held[old][-1]
    assert PINNED in held["example.com/of-the-admin:1"][-1]
