"""Look into results: contingency tables, orders of systems, sampled lists, and analysis of variance.

Beside these, `rankeval` itself offers curves, overlap of rankings, and why two tools disagree.
"""

from __future__ import annotations

from rankeval._registry import late

_HOMES = {
    "contingency": ("ContingencyTable", "contingency_table"),
    "ordering": ("OrderAgreement", "order_agreement"),
    "sampling": ("corrected_for_sampling",),
    "variance": ("Anova", "anova"),
}
__all__, __getattr__ = late(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
