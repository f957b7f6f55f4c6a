# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval.model_selection.diagnosis import Diagnosis as Diagnosis
from rankeval.model_selection.results import CrossValidations as CrossValidations
from rankeval.model_selection.studies import Study as Study
from rankeval.model_selection.trials import OptunaObjective as OptunaObjective
from rankeval.model_selection.validation import LearningCurve as LearningCurve
