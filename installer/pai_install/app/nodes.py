"""Machines that join, leave, and replace each other, with layout.yaml kept in step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pai_install.app.context import App, RunOptions
from pai_install.app.frontend import FileDifference
from pai_install.documents.problem import text_lines
from pai_install.documents.validate import did_you_mean
from pai_install.errors import ExitCode, PaiError
from pai_install.operations.node_add import NodeAdd
from pai_install.operations.node_removal_steps import FORGET
from pai_install.operations.node_remove import NodeRemove
from pai_install.operations.quota_refresh import spare_capacity
from pai_install.plan.phases import PHASES
from pai_install.report.model import HostStatus, Outcome
from pai_install.run.layout_file import edited_layout, layout_edited_by, read_layout, site_with
from pai_install.run.workflow import StageFailed, StageStopped, Workflow, WorkflowStage, WorkflowStore, never_done
from pai_install.site.load import LAYOUT
from pai_install.site.model import Machine, Site
from pai_install.site_edit.machines import with_machine, with_present, with_values
from pai_install.site_edit.shown import difference
from pai_install.system.parameters import Parameter

_FAILED = (HostStatus.FAILED, HostStatus.UNREACHABLE)
_INSTALLATION = frozenset({"clean", *(phase.name for phase in PHASES)})
_DAY_S = 86400
_NODES = Parameter(positional=True, metavar="NODE...")
_ADDRESS, _NAME = Parameter(metavar="ADDRESS"), Parameter(metavar="NAME")


class AddNodes(BaseModel):
    """Machines that join. hostip, machine_type: of one machine that layout.yaml lacks."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    nodes: Annotated[tuple[str, ...], _NODES] = Field(min_length=1)
    hostip: Annotated[str, _ADDRESS] = Field("", description="IP address. Adds the machine to layout.yaml first.")
    machine_type: Annotated[str, _NAME] = Field("", description="Machine type, a name in machine-sku.")

    @model_validator(mode="after")
    def _is_whole(self) -> AddNodes:
        if bool(self.hostip) != bool(self.machine_type):
            raise ValueError("--hostip and --machine-type go together")
        if self.hostip and len(set(self.nodes)) > 1:
            raise ValueError("--hostip and --machine-type are for one machine")
        return self


class RemoveNodes(BaseModel):
    """Machines to remove, and the treatment of their jobs."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    nodes: Annotated[tuple[str, ...], _NODES] = Field(min_length=1)
    dead: bool = Field(default=False, description="Do not contact the machines.")
    wait: Annotated[int | None, Parameter(metavar="[SECONDS]", default="up to a day", bare=str(_DAY_S))] = Field(
        None, ge=0, description="Wait for running jobs."
    )
    grace: Annotated[int | None, Parameter(metavar="SECONDS")] = Field(
        None, ge=0, description="Stop jobs with this grace period."
    )
    timeout: int = Field(300, ge=1, description="Time limit of each node's drain, in seconds.")
    force: bool = Field(default=False, description="Stop jobs immediately, and delete pods under a disruption budget.")
    keep: Annotated[bool, Parameter(flag="--keep-in-layout")] = Field(
        default=False, description="Mark the machines as absent instead of removing them."
    )
    data: Annotated[bool, Parameter(flag="--with-data")] = Field(
        default=False, description="Also remove images and other data from the machines."
    )


class ReplaceNode(BaseModel):
    """A node and its replacement machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    node: Annotated[str, Parameter(positional=True)]
    hostip: Annotated[str, _ADDRESS] = Field("", description="New IP address for layout.yaml.")
    machine_type: Annotated[str, _NAME] = Field("", description="New machine type for layout.yaml.")


def add_nodes(app: App, request: AddNodes, options: RunOptions) -> int:
    """Adds machines. A failed one is cleaned, so that the same command begins again. Returns the exit code."""
    nodes = tuple(dict.fromkeys(request.nodes))
    before, text = read_layout(app.site_dir), _layout_with(app, nodes, _entry(request))
    _show_change(app, before, text)
    join = _Join(app, NodeAdd(nodes=nodes, before=before, text=text), options.model_copy(update={"layout": text}))
    # One lock over join and cleaning: no other command may come in between.
    with app.hold("node add"):
        return Workflow((join.stage,), join, app.frontend.notify).advance()


def remove_nodes(app: App, request: RemoveNodes, options: RunOptions, confirmed: str | None) -> int:
    """Removes machines. confirmed: the names in the confirmation, None without one. The exit code.

    Raises PaiError for unknown machines, and for a site that is invalid without them.
    """
    nodes = tuple(dict.fromkeys(request.nodes))
    machines = _machines(app.site, nodes)
    planes = any(machine.control_plane for machine in machines)
    if not options.check:
        _require_names(nodes, confirmed, by_name=planes)
    how = "absent" if request.keep else "remove"
    layout = edited_layout(app.site_dir, nodes, how)
    _show_change(app, read_layout(app.site_dir), layout)
    words = request.model_dump(exclude={"nodes", "keep"})
    operation = NodeRemove(machines=machines, nodes=nodes, how=how, **words)
    code = app.exit_code(operation, options.model_copy(update={"layout": layout}))
    if code == ExitCode.OK and planes and not options.check:
        app.notify("next: pai-install apply, which updates the other machines after the loss of a control plane")
    return code


def replace_node(app: App, request: ReplaceNode, options: RunOptions) -> int:
    """Removes the node of the old machine, and adds the new one. The exit code.

    Raises PaiError where the old machine is a ready node.
    """
    name = request.node
    machines = _machines(app.site, (name,))
    values = {**_entry(request), **({"absent": "false"} if machines[0].absent else {})}
    before = read_layout(app.site_dir)
    text = layout_edited_by(app.site_dir, lambda text: with_values(text, name, values))
    _show_change(app, before, text)
    options = options.model_copy(update={"layout": text})
    join = _Join(app, NodeAdd(nodes=(name,), before=before, text=text), options)

    def leave() -> int:
        operation = NodeRemove(machines=machines, nodes=(name,), dead=True, how="replaced")
        outcome = app.run(operation, options)
        code = ExitCode.PREFLIGHT_FAILED if outcome is None else outcome.exit_code
        if outcome is None or options.check or code != ExitCode.OK:
            raise StageStopped(code)
        # The question about the removal covers the whole replacement. Without a removal nothing was asked yet.
        join.agreed = any(phase.name == FORGET for phase in outcome.phases)
        return code

    first = WorkflowStage("leave", f"Remove the node of the old {name}", never_done, leave)
    # One lock over both runs: nothing may change the cluster between leaving and joining.
    with app.hold("node replace"):
        return Workflow((first, join.stage), join, app.frontend.notify).advance()


class _Join(WorkflowStore[None]):
    """The stage in which machines join. The machines and the cluster have its state. agreed: do not ask."""

    def __init__(self, app: App, operation: NodeAdd, options: RunOptions) -> None:
        self.agreed = False
        self._app = app
        self._operation = operation
        self._options = options
        self._failed: tuple[str, ...] = ()
        self.stage = WorkflowStage("join", f"Add {', '.join(operation.nodes)}", never_done, self._run, undo=self._clean)

    def read(self) -> None:
        """Nothing."""

    def _run(self) -> int:
        outcome = self._app.run(self._operation, self._options, agreed=self.agreed)
        if outcome is None:
            raise StageStopped(ExitCode.PREFLIGHT_FAILED)
        # The same command continues an interrupted run, so its machines are not cleaned.
        if self._options.check or outcome.interrupted:
            raise StageStopped(outcome.exit_code)
        self._failed = tuple(name for name in self._operation.nodes if _has_failed(outcome, name))
        if self._failed:
            raise StageFailed(outcome.exit_code)
        if outcome.exit_code == ExitCode.OK:
            for line in spare_capacity(self._app.site, self._operation.nodes):
                self._app.notify(f"{line}. To use it, raise a quota in services-configuration.yaml and run vc apply.")
        return outcome.exit_code

    def _clean(self) -> None:
        names = self._failed
        machines = tuple(self._app.site.machine(name) for name in names)
        operation = NodeRemove(machines=machines, nodes=names, force=True, how="keep")
        outcome = self._app.run(operation, agreed=True, shown=False)
        for name in names:
            clean = outcome is not None and _is_clean(outcome, name)
            self._app.notify(f"{name}: not added; {'clean' if clean else 'not clean: the next node add cleans it'}")


def _entry(request: AddNodes | ReplaceNode) -> dict[str, str]:
    values = {"hostip": request.hostip, "machine-type": request.machine_type}
    return {key: value for key, value in values.items() if value}


def _layout_with(app: App, names: tuple[str, ...], entry: Mapping[str, str]) -> str:
    """The text of layout.yaml with the machines present."""
    known = {machine.hostname: machine for machine in app.site.machines}
    new = [name for name in names if name not in known]
    absent = [name for name in names if name in known and known[name].absent]
    if new and not entry:
        raise PaiError(
            f"cannot find {', '.join(new)} in layout.yaml",
            code="machine-not-in-layout",
            remedy="add it to machine-list, or name one machine with --hostip and --machine-type",
            exit_code=ExitCode.USAGE,
        )
    if entry and not new:
        _require_same(known[names[0]], entry)

    def edit(text: str) -> str:
        for name in new:
            text = with_machine(text, {"hostname": name, **entry, "pai-worker": "true"})
        return with_present(text, absent)

    return layout_edited_by(app.site_dir, edit)


def _require_same(machine: Machine, entry: Mapping[str, str]) -> None:
    values = {"hostip": machine.hostip, "machine-type": machine.sku}
    if differs := [key for key, value in values.items() if entry.get(key, value) != value]:
        name = machine.hostname
        raise PaiError(
            f"cannot add {name}: layout.yaml has another {' and '.join(differs)}",
            code="machine-differs-from-layout",
            remedy=f"leave out the options, or edit layout.yaml. For new hardware: pai-install node replace {name}",
            exit_code=ExitCode.USAGE,
        )


def _show_change(app: App, before: str, text: str) -> None:
    """Shows the change of layout.yaml, and the warnings that are new. Raises PaiError where the site is invalid."""
    if text == before:
        return
    after = site_with(app.site_dir, text)
    known = {(problem.path, problem.message) for problem in app.loaded.problems}
    for line in text_lines(one for one in after.problems if (one.path, one.message) not in known):
        app.notify(line)
    app.frontend.notify(FileDifference(difference(str(app.site_dir / LAYOUT), before, text, ())))


def _has_failed(outcome: Outcome, name: str) -> bool:
    """Whether a phase of the installation failed there. A failed verification leaves the machine for diagnosis."""
    results = (phase.hosts[name] for phase in outcome.phases if phase.name in _INSTALLATION and name in phase.hosts)
    return any(result.status in _FAILED for result in results)


def _is_clean(outcome: Outcome, name: str) -> bool:
    return all(phase.hosts[name].status.good for phase in outcome.phases if name in phase.hosts)


def _machines(site: Site, names: tuple[str, ...]) -> tuple[Machine, ...]:
    """The machines of the layout, absent ones included. Raises PaiError (usage) for unknown names."""
    known = {machine.hostname: machine for machine in site.machines}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise PaiError(
            f"cannot find {', '.join(unknown)} in layout.yaml",
            code="machine-not-in-layout",
            remedy=did_you_mean(unknown[0], known),
            exit_code=ExitCode.USAGE,
        )
    return tuple(known[name] for name in names)


def _require_names(names: tuple[str, ...], confirmed: str | None, *, by_name: bool) -> None:
    """Several machines are confirmed by name, and so is a control plane (by_name). Raises PaiError (usage)."""
    if confirmed is None or (not confirmed and len(names) == 1 and not by_name):
        return
    given = {word for word in confirmed.replace(" ", ",").split(",") if word}
    if given != {*names}:
        raise PaiError(
            f"cannot continue: --yes confirms {', '.join(sorted(given)) or 'no name'}, and the command "
            f"concerns {', '.join(names)}",
            code="confirmed-names-differ",
            remedy=f"confirm all names: --yes={','.join(names)}",
            exit_code=ExitCode.USAGE,
        )
