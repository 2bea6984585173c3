"""One recorded evaluation, and the checksum that seals it."""

from __future__ import annotations

import math
import struct
from hashlib import blake2b
from typing import Any, NamedTuple


class JournalError(RuntimeError):
    """A journal cannot be opened, written or trusted; the message says why."""


class Row(NamedTuple):
    """One evaluation as recorded: `fun` is nan when it failed, `seconds` when its time is not known."""

    id: int
    query: int
    mark: bytes
    fun: float
    failure: str
    seconds: float

    def columns(self) -> tuple[Any, ...]:
        # bytes, since SQLite's REAL would turn -0.0 into 0.0
        value = None if math.isnan(self.fun) else struct.pack("<d", self.fun)
        seconds = None if math.isnan(self.seconds) else float(self.seconds)
        return self.id, self.query, self.mark, value, self.failure, seconds

    @classmethod
    def of(cls, columns: tuple[Any, ...]) -> Row:
        id, query, mark, value, failure, seconds = columns
        fun = math.nan if value is None else struct.unpack("<d", value)[0]
        return cls(id, query, mark, fun, failure, math.nan if seconds is None else seconds)


def seal(*parts: Any) -> bytes:
    """A checksum of 64 bits over numbers, texts and bytes."""
    head = repr([len(part) if isinstance(part, bytes) else part for part in parts])
    digest = blake2b(head.encode(), digest_size=8)
    for part in parts:
        if isinstance(part, bytes):
            digest.update(part)
    return digest.digest()
