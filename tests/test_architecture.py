"""The house rules that a machine can check."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fewdim
from fewdim import METHODS

SRC = Path(fewdim.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
PURE_OURS = {
    "box",
    "gradients",
    "core",
    "directions",
    "kernels",
    "lines",
    "noise",
    "scales",
    "theory",
    "methods",
    "oracles",
}
PURE_OTHERS = {
    "numpy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.special",
    "math",
    "dataclasses",
    "typing",
    "collections.abc",
}
PURE_OTHERS |= {"__future__", "warnings", "inspect", "numpy.typing"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def name_of(path: Path) -> str:
    return str(path.relative_to(SRC))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            doc = ast.get_docstring(node, clean=False) or ""
            assert (node.end_lineno or 0) - node.lineno - doc.count("\n") <= 60, node.name


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name in ("methods", "oracles")], ids=name_of)
def test_methods_and_oracles_are_pure(path: Path) -> None:
    """No clock, no input or output, no global randomness, no driver."""
    for module in imports(ast.parse(path.read_text())):
        if module.startswith("fewdim"):
            parts = module.split(".")
            assert len(parts) == 1 or parts[1] in PURE_OURS, module
        else:
            assert module in PURE_OTHERS, module
    assert "np.random" not in path.read_text()


@pytest.mark.parametrize("path", [p for p in FILES if p.parent.name in ("methods", "oracles")], ids=name_of)
def test_no_call_is_thrown_away(path: Path) -> None:
    """A bare call statement in a generator is most likely a forgotten `yield from`; checks of settings are not."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func)
            allowed = (
                "check_",
                "self._set",
                "super().",
                "warnings.warn",
                "object.__setattr__",
                "self._warn",
                "seen.",
            )
            assert called.startswith(allowed) or called == "self._paper", called


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.name in ("session.py", "loop.py", "minimize.py", "evaluate.py")], ids=name_of
)
def test_drivers_know_methods_through_the_registry_only(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert not [m for m in imports(tree) if m.startswith("fewdim.methods.") and m != "fewdim.methods.settings"]
    code = ast.unparse(ast.fix_missing_locations(_without_docstrings(tree)))
    for cls in METHODS.values():
        assert str(cls.__name__) not in code


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@pytest.mark.parametrize("cls", sorted(set(METHODS.values()), key=repr), ids=repr)
def test_docstrings_of_methods_have_their_parts(cls: Any) -> None:
    doc = inspect.getdoc(cls) or ""
    for part in (
        ".. math::",
        "setting",
        "symbol",
        "default",
        "source",
        "**Cost.**",
        "**Guarantee.**",
        "**Departures.**",
    ):
        assert part in doc, part
    assert ">>>" in doc
    assert "References" in doc
    for setting in inspect.signature(cls).parameters:
        assert setting in doc, setting


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_public_things_have_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "module"
    for node in tree.body:
        if (
            isinstance(node, (ast.FunctionDef, ast.ClassDef))
            and not node.name.startswith("_")
            and path.name != "kernels.py"
        ):
            assert ast.get_docstring(node), node.name


def test_all_lists_what_is_public() -> None:
    assert len(set(fewdim.__all__)) == len(fewdim.__all__)
    for name in fewdim.__all__:
        assert hasattr(fewdim, name)


def test_importing_does_not_touch_heavy_extras() -> None:
    heavy = ("matplotlib", "torch", "pandas", "dask", "ray", "typer", "sklearn")
    code = f"import fewdim, sys; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
