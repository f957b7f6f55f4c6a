# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval.online.crediting import compare_interleaved as compare_interleaved
from rankeval.online.experiments import ABTest as ABTest
from rankeval.online.experiments import ab_power as ab_power
from rankeval.online.experiments import ab_test as ab_test
from rankeval.online.experiments import assign as assign
from rankeval.online.interleaving import Interleaved as Interleaved
from rankeval.online.interleaving import Interleaver as Interleaver
from rankeval.online.interleaving import interleaving_bias as interleaving_bias
from rankeval.online.logs import ClickLog as ClickLog
from rankeval.online.logs import ClickRates as ClickRates
from rankeval.online.logs import LogChecks as LogChecks
from rankeval.online.looks import LooksPlan as LooksPlan
from rankeval.online.looks import confidence_sequence as confidence_sequence
from rankeval.online.looks import looks_plan as looks_plan
from rankeval.online.models import ClickModel as ClickModel
from rankeval.online.models import Perplexity as Perplexity
from rankeval.online.weighting import PolicyValue as PolicyValue
from rankeval.online.weighting import Propensities as Propensities
from rankeval.online.weighting import counterfactual as counterfactual
from rankeval.online.weighting import policy_value as policy_value
from rankeval.online.weighting import propensities as propensities
