"""Examples of jobs in guides: which schedulers take each, and what `job validate` says of it."""

from __future__ import annotations

from collections.abc import Iterator

from pai_install.scheduling.model import BACKENDS
from tests.docs.markdown import table, with_generated
from tests.examples import SEARCH, SHORT_SEARCH, backends_of, names, text_of, validated


def with_examples(text: str) -> str:
    """docs/examples.md with its table."""
    rows = []
    for name in names():
        taken = backends_of(name)
        rows.append((f"[{name}](../examples/{name})", _about(name), *("yes" if taken[it] else "" for it in BACKENDS)))
    return with_generated(text, table(("File", "What it is", *(f"`{it}`" for it in BACKENDS)), rows), _search())


def with_meanings(text: str, *examples: str) -> str:
    """A page that shows what these examples mean, in their order."""
    return with_generated(text, *(_console(f"job validate --site my-site examples/{it}", it) for it in examples))


def _search() -> Iterator[str]:
    words = " ".join(SHORT_SEARCH)
    yield from ("", "```console", f"$ python3 examples/{SEARCH} {words} > search.yaml")
    yield from ("$ pai-install job validate --site my-site --group vision search.yaml", validated(SEARCH), "```", "")


def _console(command: str, name: str) -> Iterator[str]:
    yield from ("", "```console", f"$ pai-install {command} --group vision", validated(name), "```", "")


def _about(name: str) -> str:
    """Its first comment; of a JSON file, which has none, what it is."""
    first = text_of(name).splitlines()[0]
    if name == SEARCH:
        return "Prints an elastic parameter search, with one Job per trial"
    return first[2:].rstrip(".") if first.startswith("# ") else OF_JSON[name]


OF_JSON = {
    "openpai/ps-worker.json": "TensorFlow with 2 parameter servers and 2 workers, in OpenPAI's protocol 1",
    "openpai/single.json": "TensorFlow on 2 GPUs, in OpenPAI's protocol 1",
}
