"""Compare systems: paired by query, tested, corrected.

A comparison is made in these steps; a record of its numbers is all that the other files read::

    inputs       scores of systems, plain or by collection -> paired scores
    comparing    compare, and the same for algorithms over the folds of a cross-validation
    design       the comparisons that are made, and the rows of the table
    concluding   test, correct, wrap: over all queries, and for collections and slices
    unjudged     what documents without a judgment could change
    record       settings, numbers and notes, also as JSON; result has the Comparison itself
    derived      what follows when asked: best, effects and posteriors, ranks
    headline, tables, figures: how it is read
"""

from rankeval.comparison.comparing import compare
from rankeval.comparison.record import Choice
from rankeval.comparison.result import Comparison

__all__ = ["Choice", "Comparison", "compare"]
