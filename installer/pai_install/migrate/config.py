"""config.yaml of the new site: the old settings file as written, with settings from other old files."""

from __future__ import annotations

from pai_install.documents.document import Document, Text
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import YamlPath
from pai_install.migrate.account import Book, Fate
from pai_install.migrate.emit import comment, flow, scalar, without_keys
from pai_install.migrate.folder import OldFile, OldFolder
from pai_install.migrate.model import Setting
from pai_install.site.legacy import LEGACY_SETTINGS
from pai_install.site.load import CONFIG
from pai_install.site.settings import NO_EFFECT, Settings

# the newest first
CONFIG_NAMES = (CONFIG, "config.yml", "config")
_RUNTIME = "worker_default_docker_runtime"


class NewConfig:
    """New settings under construction. An old settings file overrides other files."""

    def __init__(self, file: OldFile | None = None) -> None:
        self.file = file
        self.added: dict[str, Setting] = {}
        self.dropped: dict[str, str] = {}
        if file is not None:
            self._read(file)

    def has(self, key: str) -> bool:
        """Whether an old file of settings decides this."""
        return self.file is not None and self.file.document.content.get(key) not in (None, "")

    def value(self, key: str) -> str:
        """Returns a value of the new config.yaml as text, or "" if it is missing or no text."""
        if self.file is not None and self.has(key):
            value = self.file.document.content[key]
            return str(value).strip() if isinstance(value, Text) else ""
        return self.added[key].value if key in self.added else ""

    def add(self, key: str, value: str, why: str = "") -> None:
        """Sets something that no file of settings says."""
        if not self.has(key):
            self.added.setdefault(key, Setting(key, value, why))

    def settle(self, book: Book, path: YamlPath, key: str, value: str) -> None:
        """Accounts for a leaf of another file that says the same as a setting: kept, or dropped where that differs."""
        if self.value(key) == value:
            book.keep(path, f"{CONFIG}: {key}")
        else:
            ruler = self.file.name if self.file is not None and self.has(key) else CONFIG
            book.drop(path, f"{ruler} rules, and its {key} is another one for all machines")

    def _read(self, file: OldFile) -> None:
        content, book = file.document.content, file.book
        known = {info.alias or name for name, info in Settings.model_fields.items()}
        for key, value in content.items():
            if key == _RUNTIME and str(value) in {"nvidia", "runc"} and not self.has("container_default_runtime"):
                self.added["container_default_runtime"] = Setting("container_default_runtime", str(value))
                self.dropped[key] = "now container_default_runtime"
                book.replace((key,), f"{CONFIG}: container_default_runtime")
            elif value in (None, ""):
                self.dropped[key] = "has no value"
                book.drop((key,), self.dropped[key])
            elif key in NO_EFFECT or key not in known:
                self.dropped[key] = NO_EFFECT.get(key) or LEGACY_SETTINGS.get(key, ("is not a known key", ""))[0]
                book.drop((key,), self.dropped[key])
        for key in content.keys() - self.dropped.keys():
            book.keep((key,), CONFIG)
        book.whole(Fate.KEPT, f"{CONFIG}, with its comments")

    def text(self) -> str:
        """Returns the file: the old text with dropped entries as comments, or a new text if that would change its
        meaning.
        """
        added = [line for setting in self.added.values() for line in _lines(setting)]
        if self.file is None:
            return "\n".join(added) + "\n"
        tail = "\n" + "\n".join(added) + "\n" if added else ""
        old = self.file.document
        text = without_keys(old, self.dropped) + tail
        again = Document(CONFIG)
        parse_document(text, again)
        kept = {key: value for key, value in old.content.items() if key not in self.dropped}
        wanted = kept | {setting.key: setting.value for setting in self.added.values()}
        if again.content == wanted and not any(problem.is_error for problem in again.problems):
            return text
        head = [comment(f"dropped: {key}: {why}") for key, why in self.dropped.items()]
        return "\n".join([*head, *(f"{scalar(key)}: {flow(value)}" for key, value in kept.items())]) + "\n" + tail


def _lines(setting: Setting) -> list[str]:
    return [*([comment(setting.comment)] if setting.comment else []), f"{setting.key}: {scalar(setting.value)}"]


def read_config(folder: OldFolder) -> NewConfig:
    """Returns the newest settings file in the folder, and accounts for older ones."""
    names = [name for name in CONFIG_NAMES if folder.has(name) and not (folder.path / name).is_dir()]
    for name in names[1:]:
        folder.overrule(name, names[0])
    return NewConfig(folder.read(names[0]) if names else None)
