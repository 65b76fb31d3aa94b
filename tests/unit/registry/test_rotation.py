"""Whatever drops out or is cut off, every machine can use cache and store at every moment of a rotation."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.registry.content import Content
from pai_install.registry.identity import Identity, at_port, make_identity, with_content_kept, with_old_port
from pai_install.registry.model import ServedNames
from pai_install.registry.rotation import STAGES, RotationStage, Subject, port_rotation_notice, position, unfinished
from pai_install.registry.rotation import phases as phases_of

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MACHINES = ("one", "two", "three")
SUBJECTS: tuple[Subject, ...] = ("credentials", "ca", "endpoint")
PORTS = (30500, 30600, 30700)
OLD, NEW = Content(folder="/old"), Content(folder="/new")


@cache
def first() -> Identity:
    return make_identity(ServedNames(("docker-cache.pai.internal",), ("registry.pai.internal",), PORTS[0]), NOW)


@dataclass
class World:
    """The file, store and cache as they run, what each machine knows them by, and the site's port; draws say what
    drops out.
    """

    draw: st.DataObject
    file: Identity = field(default_factory=first)
    store: Identity = field(default_factory=first)
    cache: Identity = field(default_factory=first)
    pullers: dict[str, Identity] = field(default_factory=lambda: dict.fromkeys(MACHINES, first()))
    machines: dict[str, Identity] = field(default_factory=lambda: dict.fromkeys(MACHINES, first()))
    port: int = PORTS[0]

    def check(self) -> None:
        for name, machine in self.machines.items():
            assert machine.login in self.cache.logins, name
            assert self.cache.serving_authority in machine.authorities, name
            assert machine.used_port in self.cache.ports, name
        for name, puller in self.pullers.items():
            assert self.store.serving_authority in puller.authorities, name

    def converge(self, phases: tuple[str, ...]) -> bool:
        """As a run does it, in the order of an installation; some machines do not answer. False where it is cut off."""
        for phase in ("components", "runtime", "addons", "registries"):
            if phase in phases and not self.run(phase, alone="addons" not in phases):
                return False
        return True

    def run(self, phase: str, *, alone: bool) -> bool:
        """alone: whether the cache is left as it is."""
        if phase in ("components", "addons"):
            if self.cut():
                return False
            setattr(self, "store" if phase == "components" else "cache", self.file)
            self.check()
            return True
        known = self.pullers if phase == "runtime" else self.machines
        for name in MACHINES:
            if self.cut():
                return False
            if self.draw.draw(st.booleans(), label=f"{name} answers") and self.ready(phase, alone=alone):
                known[name] = self.file
            self.check()
        return True

    def ready(self, phase: str, *, alone: bool) -> bool:
        """Whether a machine that asks the cache at its new port is answered; else it keeps what it has."""
        found = phase == "runtime" or self.file.used_port in self.cache.ports
        assert found or alone, "the cache comes first"
        return found

    def cut(self) -> bool:
        return self.draw.draw(st.integers(0, 9), label="cut off") == 0

    def behind(self, subject: Subject) -> bool:
        if any(machine != self.file for machine in self.machines.values()):
            return True
        pulls = "runtime" in phases_of(subject)
        return pulls and any(puller.authorities != self.file.authorities for puller in self.pullers.values())

    def stage(self, stage: RotationStage) -> bool:
        """Whether the rotation may go on."""
        self.file = stage.change(self.file, NOW)
        if not self.converge(stage.phases):
            return False
        if stage.verifies and stage.undo and self.draw.draw(st.integers(0, 9), label="proof fails") == 0:
            self.file = stage.undo(self.file, NOW)
            self.converge(stage.phases)
            return False
        return True

    def open(self) -> None:
        """As every verb reads the file."""
        self.file = at_port(self.file, self.port)

    def rotate(self, subject: Subject) -> None:
        for stage in STAGES[subject][position(self.file, subject) :]:
            if stage.requires_all_machines and self.behind(subject):
                return
            if not self.stage(stage):
                return


@settings(max_examples=60)
@given(st.data(), st.lists(st.sampled_from([*SUBJECTS, "apply", "edit"]), min_size=1, max_size=6))
def test_no_machine_is_ever_locked_out(data: st.DataObject, verbs: list[str]) -> None:
    world = World(data)
    for verb in verbs:
        if verb == "edit":
            world.port = data.draw(st.sampled_from(PORTS), label="the site's port")
            continue
        world.open()
        if verb == "apply":
            world.converge(("components", "runtime", "addons", "registries"))
        else:
            world.rotate(next(subject for subject in SUBJECTS if subject == verb))
        world.check()


@dataclass
class Places:
    """The cache's content at two places, and a rotation of the back end from the old one; draws say what drops out."""

    draw: st.DataObject
    file: Identity = field(default_factory=first)
    cache: Content = OLD
    content: dict[Content, set[int]] = field(default_factory=lambda: {OLD: {0}, NEW: set()})
    known: int = 0
    copied: set[int] = field(default_factory=set)

    def cut(self) -> bool:
        return self.draw.draw(st.integers(0, 5), label="cut off") == 0

    def pull(self) -> None:
        """A machine pulls what was never pulled before."""
        self.known += 1
        self.content[self.cache].add(self.known)

    def copy(self) -> bool:
        """From the old place to the new one; a copy that is cut off has copied a part."""
        for blob in sorted(self.content[OLD]):
            if self.cut():
                return False
            self.content[NEW].add(blob)
        self.copied = set(self.content[OLD])
        return True

    def converge(self) -> None:
        self.cache = self.file.content or NEW
        missing = self.copied - self.content[self.cache]
        assert not missing, f"the cache at {self.cache} lost {missing}"
        assert self.cache == OLD or self.copied, "the cache uses a place that nothing was copied to"

    def rotate(self) -> None:
        if "backend" not in unfinished(self.file):
            if self.cache == NEW:
                return
            self.file = with_content_kept(self.file, OLD)
        for stage in STAGES["backend"][position(self.file, "backend") :]:
            self.file = stage.change(self.file, NOW)
            if not self.stage(stage):
                return

    def stage(self, stage: RotationStage) -> bool:
        if self.cut():
            return False
        if stage.phases:
            self.converge()
        if stage.copies and not self.copy():
            return False
        if stage.verifies and stage.undo and self.cut():
            self.file = stage.undo(self.file, NOW)
            self.converge()
            return False
        return True


@settings(max_examples=100)
@given(st.data(), st.lists(st.sampled_from(["rotate", "apply", "pull"]), min_size=1, max_size=12))
def test_a_move_has_no_gap(data: st.DataObject, verbs: list[str]) -> None:
    """Whatever is cut off: the cache never uses a place without what was copied, and loses nothing by the end."""
    places = Places(data)
    for verb in verbs:
        if verb == "pull":
            places.pull()
        elif verb == "rotate":
            places.rotate()
        elif "backend" in unfinished(places.file):  # apply leaves the content where it is
            places.converge()
        if "backend" not in unfinished(places.file) and places.cache == NEW:
            assert places.content[OLD] <= places.content[NEW]


def test_a_move_keeps_the_old_place_until_it_is_proven() -> None:
    first_place = Content(folder="/old")
    copying, switching, forgetting = STAGES["backend"]
    moved = with_content_kept(first(), first_place)
    assert (unfinished(moved), position(moved, "backend")) == (("backend",), 0)
    moved = copying.change(moved, NOW)
    assert moved.content == first_place
    moved = switching.change(moved, NOW)
    assert (moved.content, moved.left, position(moved, "backend")) == (None, first_place, 1)
    assert switching.change(moved, NOW) == moved
    assert switching.undo is not None
    back = switching.undo(moved, NOW)
    assert (back.content, back.left, position(back, "backend")) == (first_place, None, 0)
    assert forgetting.change(moved, NOW) == first()


def test_a_rotation_without_trouble_ends() -> None:
    identity = at_port(first(), 30600)
    for subject in SUBJECTS:
        for stage in STAGES[subject]:
            assert position(identity, subject) <= STAGES[subject].index(stage)
            identity = stage.change(identity, NOW)
    assert unfinished(identity) == ()
    assert [one.generation for one in identity.logins] == [2]
    assert [one.generation for one in identity.authorities] == [2]
    assert identity.serving_ca == 2
    assert (identity.ports, identity.used_port) == ((30600,), 30600)


def test_a_rotation_goes_on_where_it_was() -> None:
    identity = first()
    assert unfinished(identity) == ()
    trusted = STAGES["ca"][0].change(identity, NOW)
    assert (unfinished(trusted), position(trusted, "ca")) == (("ca",), 0)
    served = STAGES["ca"][1].change(trusted, NOW)
    assert (unfinished(served), position(served, "ca")) == (("ca",), 1)
    offered = STAGES["credentials"][0].change(identity, NOW)
    assert (unfinished(offered), position(offered, "credentials")) == (("credentials",), 0)
    moved = at_port(identity, 30600)
    assert (unfinished(moved), position(moved, "endpoint")) == (("endpoint",), 0)


def test_whoever_applies_is_port_rotation_notice_that_are_left(snapshot: SnapshotAssertion) -> None:
    moved = at_port(first(), 30600)
    assert port_rotation_notice(first()) == ""
    assert port_rotation_notice(moved) == snapshot
    assert port_rotation_notice(with_old_port(moved)) == snapshot
