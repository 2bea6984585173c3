"""Docstrings as Markdown: formulas and tables of reStructuredText in the form that the site understands."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

import griffe

TABLE = re.compile(r"^(=+ +=[= ]*)\n(.*?)\n\1\n(.*?)\n\1$", flags=re.MULTILINE | re.DOTALL)
MATH = re.compile(r"^\.\. math::[ \t]*(.*?)(?=\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)


class Markdown(griffe.Extension):  # type: ignore[misc]
    """Rewrites docstrings before they are parsed."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that is documented."""
        if obj.docstring is not None:
            obj.docstring.value = translated(obj.docstring.value)


def translated(text: str) -> str:
    """`.. math::` as display formulas, simple tables as Markdown tables."""
    text = "\n\n".join(_sectioned(text.split("\n\n")))
    text = MATH.sub(lambda m: "$$\n" + " ".join(m[1].split()) + "\n$$", text)
    return TABLE.sub(_table, text)


def _sectioned(paragraphs: list[str]) -> Iterator[str]:
    """Text and examples after a section with parameters get a heading of their own, which ends that section."""
    within = False
    for paragraph in paragraphs:
        heading = re.match(r"[A-Z]\w+\n-{3,}\n", paragraph)
        if heading:
            within = True
        elif within and not paragraph.startswith(" "):
            title = "Examples" if paragraph.startswith(">>>") else "Notes"
            paragraph, within = f"{title}\n{'-' * len(title)}\n{paragraph}", title == "Examples"
        yield paragraph


def _table(match: re.Match[str]) -> str:
    starts = [m.start() for m in re.finditer(r"=+", match[1])]
    cuts = list(zip(starts, [*starts[1:], None], strict=True))
    head, *rows = [[line[a:b].strip() for a, b in cuts] for line in [match[2], *match[3].split("\n")]]
    joined: list[list[str]] = []
    for row in rows:
        if row[0] or not joined:
            joined.append(row)
        else:  # a line that goes on
            joined[-1] = [f"{above} {below}".strip() for above, below in zip(joined[-1], row, strict=True)]
    lines = [head, ["---"] * len(head), *joined]
    return textwrap.dedent("\n".join("| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines))
