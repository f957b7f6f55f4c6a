"""Files and frames, in and out. The built-in formats are declared when this package is imported."""

from rankeval.io import exchange, tables, trec  # noqa: F401 - each declares its formats
from rankeval.io.opening import Limits

__all__ = ["Limits"]


def __dir__() -> list[str]:
    return sorted(__all__)
