"""Compare systems: paired by query, tested, corrected.

A comparison is made in these steps; a record of its numbers is all that the other files read::

    comparing    scores -> design -> concluding -> (grouping, for collections and slices) -> Comparison
    record       the fields of a Comparison
    derived/     what follows from it when asked: best, effects and posteriors, ranks
    views/       how it is read: headline, tables, figures

Beside it: folds (algorithms over cross-validation), ordering and agreement (orders of systems), variance (anova).
"""

from rankeval.comparison.comparing import compare
from rankeval.comparison.record import Choice
from rankeval.comparison.result import Comparison

__all__ = ["Choice", "Comparison", "compare"]
