"""The folder of an old site: its files, each read once and with a book of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.problem import Problem, SiteInvalid, printable
from pai_install.documents.reader import read_text_file
from pai_install.errors import ExitCode, PaiError
from pai_install.migrate.account import AccountLine, Book, Fate
from pai_install.system.plain import visible

_KUBESPRAY = "kubespray is not used; it was made from the lists of machines and the settings"
# files that OpenPAI's installer made or read, and that say nothing to pai-install
_WITHOUT_USE = {
    "k8s-role-definition.yaml": "kubeadm decides what runs on which machine",
    "hosts.yml": _KUBESPRAY,
    "openpai.yml": _KUBESPRAY,
    "gpu-hosts.yml": _KUBESPRAY,
    "infra-hosts.yml": _KUBESPRAY,
    "pre-check.yml": "preflight checks replace OpenPAI's",
    "set-passwordless-ssh.yml": "pai-install logs in with the key or password of config.yaml",
}
_TEMPLATE = "a template of OpenPAI's, no file of the site"
_UNKNOWN = "no file that OpenPAI's installer read by this name"


@dataclass(frozen=True, slots=True)
class OldFile:
    """A file of the old site and its account."""

    document: Document
    book: Book

    @property
    def name(self) -> str:
        """Its name in the folder."""
        return self.book.file


class OldFolder:
    """Every file of an old site's folder. Requested files are read, and the others are listed by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.books: dict[str, Book] = {}
        self.problems: list[Problem] = []

    def has(self, name: str) -> bool:
        """Returns whether any entry has this name, file or not."""
        path = self.path / name
        return path.is_symlink() or path.exists()

    def book(self, name: str) -> Book:
        """The account of a file."""
        return self.books.setdefault(name, Book(printable(name)))

    def read(self, name: str) -> OldFile:
        """Returns a YAML file with every leaf in its book. Its errors are added to `problems`."""
        document = self.document(name)
        self.problems += document.problems
        book = self.book(name)
        book.open(document)
        return OldFile(document, book)

    def document(self, name: str, *, last_wins: bool = True) -> Document:
        """Returns a YAML file. Raises PaiError for a link out of the folder."""
        # OpenPAI took the last of two equal keys. What it did not see goes into the account.
        document, text = self.text(name)
        if text is not None:
            parse_document(text, document, last_wins=last_wins)
        return document

    def text(self, name: str) -> tuple[Document, str | None]:
        """Returns an empty document and the text of a file, in which all characters are seen. Raises PaiError."""
        path = self.path / name
        document = Document(printable(str(path)), path.parent)
        if not path.resolve().is_relative_to(self.path.resolve()):
            raise _leaves(path)
        # The text goes on into files of the new site.
        text = read_text_file(path, document)
        return document, None if text is None else visible(text)

    def check(self) -> None:
        """Raises SiteInvalid with all that is wrong with the files that were read."""
        if self.problems:
            raise SiteInvalid(self.problems)

    def overrule(self, name: str, by: str) -> None:
        """Accounts for a file that does not count because another one is newer."""
        document = self.document(name)
        book = self.book(name)
        book.open(document)
        book.drop((), f"{by} is there, too, and rules")
        book.whole(Fate.DROPPED, f"{by} is there, too, and rules")

    def account(self) -> list[AccountLine]:
        """Returns the outcome of every file and its content. No leaf can be taken afterwards."""
        for path in sorted(self.path.iterdir()):
            if path.name not in self.books:
                self.book(path.name).whole(Fate.DROPPED, _why_not(path))
        return [entry for name in sorted(self.books) for entry in self.books[name].close()]


def _leaves(path: Path) -> PaiError:
    return PaiError(
        f"cannot read {printable(str(path))}: it is a link out of the folder",
        code="migrate-link",
        details=f"the link leads to {printable(str(path.resolve()))}",
        remedy="copy the file to the folder, in place of the link",
        exit_code=ExitCode.USAGE,
    )


def _why_not(path: Path) -> str:
    if path.is_dir():
        return "a folder, which is not looked into"
    if path.name.endswith((".template", ".j2")):
        return _TEMPLATE
    return _WITHOUT_USE.get(path.name, _UNKNOWN)
