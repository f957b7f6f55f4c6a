"""Draw what people look at from the files that hold the numbers, when those are safe."""

from __future__ import annotations

import posixpath
import warnings
from dataclasses import dataclass, field

from rankeval.errors import RankevalWarning
from rankeval_mlflow.delivery.payload import Node, Rendering

# Drawing that ended two processes, as by too much memory, is not tried a third time.
_ATTEMPTS = 2


@dataclass(frozen=True)
class Drawn:
    """Drawn files by artifact path, the paths that MLflow shows as tables, and a sentence for each failure."""

    files: dict[str, bytes] = field(default_factory=dict)
    tables: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


def drawn_files(node: Node, attempt: int) -> Drawn:
    """Draw the files of a node; one that cannot be drawn is a warning, and never a lost record.

    Parameters
    ----------
    node : Node
        The node, with its renderings.
    attempt : int
        How often the files of this node were begun to be drawn, this time included.
    """
    drawn = Drawn()
    for rendering in node.renderings:
        if attempt > _ATTEMPTS:
            drawn.failures.append(f"Not drawn from {rendering.source}: drawing it ended {attempt - 1} processes.")
            continue
        try:
            files = _drawn(node, rendering)
        except Exception as error:  # noqa: BLE001 - a drawing library may raise anything, and the scores are safe
            said = f"Not drawn from {rendering.source}: {type(error).__name__}: {' '.join(str(error).split())[:200]}."
            warnings.warn(said, RankevalWarning, stacklevel=2)
            drawn.failures.append(said)
            continue
        drawn.files.update(files)
        drawn.tables.extend(
            path for path in (posixpath.join(rendering.into, one) for one in rendering.tables) if path in files
        )
    return drawn


def promised_tables(node: Node) -> list[str]:
    """Return the artifact paths of the tables that a node is to have."""
    return [posixpath.join(rendering.into, path) for rendering in node.renderings for path in rendering.tables]


def _drawn(node: Node, rendering: Rendering) -> dict[str, bytes]:
    """Return the files of one rendering by artifact path."""
    from rankeval_mlflow.views.rendering import render

    files = render(rendering.kind, node.files[rendering.source], rendering.options)
    return {posixpath.join(rendering.into, path): content for path, content in files.items()}
