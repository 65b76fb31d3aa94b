from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

class AnsibleModule:
    params: dict[str, Any]
    check_mode: bool
    run_command_environ_update: dict[str, str]

    def __init__(
        self,
        argument_spec: Mapping[str, Any],
        *,
        supports_check_mode: bool = ...,
        required_if: Sequence[tuple[str, str, tuple[str, ...]]] | None = ...,
    ) -> None: ...
    def exit_json(self, **result: Any) -> NoReturn: ...
    def fail_json(self, msg: str, **result: Any) -> NoReturn: ...
    def run_command(
        self,
        args: str | Sequence[str],
        check_rc: bool = ...,
        *,
        data: str | None = ...,
        cwd: str | None = ...,
        environ_update: Mapping[str, str] | None = ...,
        handle_exceptions: bool = ...,
    ) -> tuple[int, str, str]: ...
    def preserved_copy(self, src: str, dest: str) -> None: ...
    def warn(self, warning: str) -> None: ...
