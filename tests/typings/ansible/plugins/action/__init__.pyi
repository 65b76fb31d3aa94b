from collections.abc import Mapping
from typing import Any, ClassVar

class _Shell:
    tmpdir: str
    def join_path(self, *parts: str) -> str: ...

class _Connection:
    _shell: _Shell

class _Role:
    def get_name(self, include_role_fqcn: bool = ...) -> str: ...

class _Task:
    args: dict[str, Any]
    check_mode: bool
    environment: list[dict[str, str]] | None
    _role: _Role | None

class ActionBase:
    TRANSFERS_FILES: ClassVar[bool]
    _task: _Task
    _connection: _Connection

    def run(self, tmp: str | None = ..., task_vars: dict[str, Any] | None = ...) -> dict[str, Any]: ...
    def _execute_module(
        self,
        module_name: str | None = ...,
        module_args: Mapping[str, Any] | None = ...,
        *,
        task_vars: Mapping[str, Any] | None = ...,
    ) -> dict[str, Any]: ...
    def _transfer_file(self, local_path: str, remote_path: str) -> str: ...
    def _make_tmp_path(self) -> str: ...
    def _low_level_execute_command(self, cmd: str) -> dict[str, Any]: ...
