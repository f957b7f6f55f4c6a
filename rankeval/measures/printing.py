"""How a measure prints: its canonical name, and its key for MLflow, which refuses ``@ ( ) = ,`` in names.

A key writes ``__name.value`` for each parameter and ``_at_k`` for the cut-off, with anything but letters, digits and
dots in a value as ``-`` and two hex digits of each byte. `rankeval.measures.names` reads both back.
"""

from __future__ import annotations

import re
from typing import Any

Parameters = tuple[tuple[str, Any], ...]


def spell(family: str, parameters: Parameters) -> str:
    """Return the canonical name of a measure.

    Parameters
    ----------
    family : str
        Name of its family.
    parameters : tuple of (str, value)
        Its parameters, the cut-off among them.
    """
    inside = ", ".join(f"{name}={_literal(value)}" for name, value in parameters if name != "cutoff")
    cutoff = dict(parameters).get("cutoff")
    return f"{family}{f'({inside})' if inside else ''}{f'@{cutoff}' if cutoff else ''}"


def key(family: str, parameters: Parameters) -> str:
    """Return a name of a measure that MLflow takes.

    Parameters
    ----------
    family, parameters
        As of `spell`.
    """
    inside = "".join(f"__{name}.{_escaped(_literal(value))}" for name, value in parameters if name != "cutoff")
    cutoff = dict(parameters).get("cutoff")
    return f"{family}{inside}{f'_at_{cutoff}' if cutoff else ''}"


def _literal(value: Any) -> str:
    is_map = isinstance(value, tuple) and value and all(isinstance(part, tuple) for part in value)
    return repr(dict(value)) if is_map else repr(value)


def _escaped(text: str) -> str:
    if re.fullmatch(r"'[A-Za-z]+'", text):
        return text[1:-1]  # a plain word needs no quotes: nothing else that is written is one
    return "".join(
        char
        if char.isascii() and (char.isalnum() or char == ".")
        else "".join(f"-{byte:02x}" for byte in char.encode())
        for char in text
    )
