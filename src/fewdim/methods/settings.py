"""Settings of methods: how they are stored, read back, changed and checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterable
from typing import Any, TypeVar

M = TypeVar("M")


class Settings:
    """For frozen dataclasses with a constructor of their own: a setting whose name a method of the class already has
    (`step`) is stored with an underscore (`step_`).
    """

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name + "_" if callable(getattr(type(self), name, None)) else name, value)

    def __replace__(self, **changes: Any) -> Any:
        """For `copy.replace`; `changed` does it on every Python."""
        return changed(self, **changes)

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        shown = [f"{name}={value!r}" for name, value in settings(self).items() if value is not defaults[name]]
        return f"{type(self).__name__}({', '.join(shown)})"


def settings(method: Any) -> dict[str, Any]:
    """The settings of a method as its constructor takes them."""
    names = inspect.signature(type(method)).parameters
    return {name: getattr(method, name + "_" if hasattr(method, name + "_") else name) for name in names}


def changed(method: M, **changes: Any) -> M:
    """The same method with some settings changed."""
    return type(method)(**{**settings(method), **changes})


def check_positive(owner: object, **values: object) -> None:
    """Each value must be a finite number above 0; None is not checked."""
    for name, value in values.items():
        if value is not None and not (is_number(value) and 0 < value < math.inf):  # type: ignore[operator]
            raise ValueError(_rule(owner, name, "must be a positive number", value))


def check_level(owner: object, **values: object) -> None:
    """Each value must be a finite number of at least 0."""
    for name, value in values.items():
        if not (is_number(value) and 0 <= value < math.inf):  # type: ignore[operator]
            raise ValueError(_rule(owner, name, "must be a number of at least 0", value))


def check_count(owner: object, **values: object) -> None:
    """Each value must be an integer of at least 1."""
    for name, value in values.items():
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 1:
            raise ValueError(_rule(owner, name, "must be an integer of at least 1", value))


def check_choice(owner: object, choices: Collection[str], **values: object) -> None:
    """Each value must be one of the names."""
    for name, value in values.items():
        if not (isinstance(value, str) and value in choices):
            raise ValueError(_rule(owner, name, f"must be one of {', '.join(map(repr, choices))}", value))


def check_noise(owner: object, noise: object) -> None:
    """`noise` is "auto" or a level of at least 0."""
    if noise != "auto" and not (is_number(noise) and 0 <= noise < math.inf):  # type: ignore[operator]
        raise ValueError(_rule(owner, "noise", 'must be "auto" or a number of at least 0', noise))


def check_momentum(owner: object, momentum: object) -> None:
    """`momentum` is None or in [0, 1)."""
    if momentum is not None and not (is_number(momentum) and 0 <= momentum < 1):  # type: ignore[operator]
        raise ValueError(_rule(owner, "momentum", "must lie in [0, 1)", momentum))


def check_spectrum(owner: object, spectrum: Iterable[float] | None) -> tuple[float, ...] | None:
    """`spectrum` is None or eigenvalues of at least 0, not all 0; returned as a tuple."""
    if spectrum is None:
        return None
    eigenvalues = tuple(float(value) for value in spectrum)
    if not eigenvalues or not all(0 <= value < math.inf for value in eigenvalues) or max(eigenvalues) == 0:
        bad = next((value for value in eigenvalues if not 0 <= value < math.inf), eigenvalues[:1])
        raise ValueError(_rule(owner, "spectrum", "must hold eigenvalues of at least 0, one of them positive", bad))
    return eigenvalues


def is_method(value: object) -> bool:
    """An object, not a class, with the three parts of a method."""
    parts = all(callable(getattr(value, name, None)) for name in ("start", "step", "done"))
    return parts and not isinstance(value, type)


def is_number(value: object) -> bool:
    """What a float can be made of; neither text nor a truth value."""
    return hasattr(value, "__float__") and not isinstance(value, (str, bool))


def _rule(owner: object, name: str, rule: str, value: object) -> str:
    label = owner if isinstance(owner, str) else type(owner).__name__
    return f"{label}({name}=...) {rule}; got {value!r}."
