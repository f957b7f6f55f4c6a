# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval.analysis.contingency import ContingencyTable as ContingencyTable
from rankeval.analysis.contingency import contingency_table as contingency_table
from rankeval.analysis.ordering import OrderAgreement as OrderAgreement
from rankeval.analysis.ordering import order_agreement as order_agreement
from rankeval.analysis.sampling import corrected_for_sampling as corrected_for_sampling
from rankeval.analysis.variance import Anova as Anova
from rankeval.analysis.variance import anova as anova
