"""Reading files of the state folder: a damaged one is named with its path, its cause, and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from pai_install.errors import PaiError

# the file is not there, or a file is where its folder belongs
MISSING = (FileNotFoundError, NotADirectoryError)


@contextmanager
def reading(path: Path, remedy: str, *, code: str = "state-file-damaged") -> Iterator[None]:
    """Raises PaiError for a file that cannot be read or used. MISSING passes."""
    try:
        yield
    except MISSING:
        raise
    except OSError as error:
        raise _unusable(
            path, error.strerror or str(error), "run the command as the owner of the file, for example with sudo", code
        ) from None
    except ValidationError as error:
        # without the input: it may be a secret
        reasons = "\n".join(str(found["msg"]) for found in error.errors(include_url=False, include_input=False))
        raise _unusable(path, "the file is damaged", remedy, code, reasons) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _unusable(path, "the file is damaged", remedy, code, f"{type(error).__name__}: {error}") from None


def _unusable(path: Path, cause: str, remedy: str, code: str, details: str = "") -> PaiError:
    return PaiError(f"cannot read {path}: {cause}", code=code, details=details, remedy=remedy)
