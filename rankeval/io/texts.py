"""Texts of documents and queries: one declaration for each format."""

from __future__ import annotations

import os

from rankeval.io.opening import DEFAULT, Limits


def read_texts(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    fields: str | tuple[str, ...] | None = None,
    limits: Limits = DEFAULT,
) -> dict[str, str]:
    """Read texts by id (to be written)."""
    raise NotImplementedError
