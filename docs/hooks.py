"""Pages of the documentation that live elsewhere, or that follow from the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import fewdim

ROOT = Path(__file__).parents[1]
SECTIONS = {
    "Minimise": ["minimize", "scipy_method", "command", "certify"],
    "Effective dimension": ["effective_dimension", "EffectiveDimension"],
    "Runs": ["Session", "Journal", "History"],
    "Writing methods": ["Query", "Steps", "Method", "State", "run", "FAILED"],
    "Directions": ["Direction", "Along", "signs", "gaussian", "sphere", "coordinate", "axis", "perturb", "accumulate"],
    "Errors": ["CommandError", "EvaluationError", "JournalError", "StabilityWarning"],
}
MODULES = {
    "Result": "fewdim.result.Result",
    "Reports": "fewdim.report.html",
    "Conformance": "fewdim.testing.check_method",
    "Bounds on the effective dimension": "fewdim.dimension.bounds",
    "Theory": "fewdim.theory",
    "Oracles": "fewdim.oracles",
    "Problems": "fewdim.problems",
}
EMPTY = "# Benchmarks\n\nNone are recorded in this version; `make overhead` measures the cost of fewdim itself.\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the claims of the paper, the benchmarks and the reference."""
    for folder in ("reproduce", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".md", ".png", ".svg") and ".cache" not in path.parts:
                name = path.relative_to(ROOT).as_posix()
                kind = {"content": path.read_text()} if path.suffix == ".md" else {"content": path.read_bytes()}
                files.append(File.generated(config, name, **kind))
    if not (ROOT / "benchmarks" / "README.md").exists():
        files.append(File.generated(config, "benchmarks/README.md", content=EMPTY))
    files.append(File.generated(config, "api.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links from those pages to files that are no part of the site become plain names."""
    if not page.file.src_uri.startswith(("reproduce/", "benchmarks/")):
        return markdown
    folder = Path(page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2].split("#")[0]
        there = target.startswith(("http:", "https:")) or not target or (folder / target).as_posix() in _names(files)
        return match[0] if there else f"`{text}`"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", link, markdown)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The one script that the theme would fetch from elsewhere is ours, too."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}javascripts/iframe-worker-1.0.4-shim.js")


def on_post_template(output_content: str, template_name: str, config: Any) -> str:
    """The same for pages without a source, such as 404.html."""
    return output_content.replace("https://unpkg.com/iframe-worker/shim", "/javascripts/iframe-worker-1.0.4-shim.js")


def _names(files: Files) -> set[str]:
    return {file.src_uri for file in files}


def _path(name: str) -> str:
    """Where a public name is defined; functions are called as their modules are."""
    item = getattr(fewdim, name)
    home = getattr(item, "__module__", "")
    return f"{home}.{name}" if str(home).startswith("fewdim") else f"fewdim.core.{name}"


def reference() -> str:
    """The reference: every public name once, methods in the order of the registry."""
    methods = [kind.__name__ for kind in dict.fromkeys(fewdim.METHODS.values())]
    placed = {name for names in SECTIONS.values() for name in names} | {*methods, "METHODS", "Values"}
    modules = {name for name in fewdim.__all__ if type(getattr(fewdim, name)).__name__ == "module"}
    rest = [name for name in fewdim.__all__ if name not in placed | modules]
    sections = {"Minimise": SECTIONS["Minimise"], "Methods": methods, **SECTIONS, "Further": rest}
    lines = [
        "# API reference",
        "",
        "The names of the first sections are those of `fewdim`: `fewdim.minimize`, `fewdim.Session`, ...",
        "",
    ]
    for title, names in sections.items():
        names = [name for name in names if hasattr(fewdim, name)]
        if names:
            lines += [f"## {title}", ""] + [f"::: {_path(name)}\n" for name in names]
    for title, path in MODULES.items():
        lines += [f"## {title}", "", f"::: {path}\n"]
    return "\n".join(lines)
