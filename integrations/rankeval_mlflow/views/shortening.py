"""Give a comparison the names that people shall see: a name of 10,000 characters fills page, plot and description.

The files keep every name whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from rankeval.comparison import Comparison
from rankeval_mlflow.names import short_names


def shown_comparison(content: bytes | str) -> Comparison:
    """Read a comparison from its JSON, long names of systems shortened visibly.

    Parameters
    ----------
    content : bytes or str
        What `Comparison.to_json` wrote.
    """
    fields = json.loads(content)
    names = short_names(_systems(fields))
    changed = {name: short for name, short in names.items() if name != short}
    return Comparison.from_json(json.dumps(_replaced(fields, changed)) if changed else _text(content))


def _text(content: bytes | str) -> str:
    return content if isinstance(content, str) else content.decode()


def _systems(fields: dict[str, Any]) -> Iterable[str]:
    """Return the names of the systems of a comparison as JSON."""
    frames = [frame for frame in (fields["table"], fields["means"]) if frame]
    named = [name for frame in frames for column in ("baseline", "system") for name in frame.get(column, ())]
    return dict.fromkeys(named)


def _replaced(value: Any, names: dict[str, str]) -> Any:
    """Return plain values with other names: where a text is a name, and where a sentence holds a long one."""
    if isinstance(value, dict):
        return {names.get(key, key): _replaced(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_replaced(each, names) for each in value]
    if isinstance(value, str):
        for name, short in sorted(names.items(), key=lambda pair: -len(pair[0])):
            value = value.replace(name, short)
    return value
