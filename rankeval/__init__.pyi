# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval import analysis as analysis
from rankeval import datasets as datasets
from rankeval import errors as errors
from rankeval import io as io
from rankeval import judging as judging
from rankeval import model_selection as model_selection
from rankeval import online as online
from rankeval import testing as testing
from rankeval import text as text
from rankeval.analysis import curves as curves
from rankeval.analysis.explanation import Explanation as Explanation
from rankeval.analysis.explanation import explain_difference as explain_difference
from rankeval.analysis.ordering import rank_intervals as rank_intervals
from rankeval.analysis.overlap import rank_biased_overlap as rank_biased_overlap
from rankeval.collection.convention import Convention as Convention
from rankeval.collection.data import RankingData as RankingData
from rankeval.collection.qrels import Qrels as Qrels
from rankeval.collection.run import Run as Run
from rankeval.comparison import Comparison as Comparison
from rankeval.comparison import compare as compare
from rankeval.evaluation import Evaluation as Evaluation
from rankeval.evaluation import evaluate as evaluate
from rankeval.experiment import run_experiment as run_experiment
from rankeval.guard import Guard as Guard
from rankeval.measures import Measure as Measure
from rankeval.measures import list_measures as list_measures
from rankeval.measures import measure as measure
from rankeval.measures import measure_from_key as measure_from_key
from rankeval.model_selection.holdout import dev_test_split as dev_test_split
from rankeval.model_selection.holdout import user_test_split as user_test_split
from rankeval.model_selection.query_split import QuerySplit as QuerySplit
from rankeval.model_selection.ranker import QueryRanker as QueryRanker
from rankeval.model_selection.results import CrossValidation as CrossValidation
from rankeval.model_selection.scorers import lightgbm_feval as lightgbm_feval
from rankeval.model_selection.scorers import make_scorer as make_scorer
from rankeval.model_selection.scorers import xgboost_metric as xgboost_metric
from rankeval.model_selection.splitters import PredefinedFolds as PredefinedFolds
from rankeval.model_selection.splitters import QueryKFold as QueryKFold
from rankeval.model_selection.splitters import QueryShuffleSplit as QueryShuffleSplit
from rankeval.model_selection.splitters import QueryTimeSplit as QueryTimeSplit
from rankeval.model_selection.splitters import RepeatedQueryKFold as RepeatedQueryKFold
from rankeval.model_selection.splitters import StratifiedQueryKFold as StratifiedQueryKFold
from rankeval.model_selection.trials import optuna_objective as optuna_objective
from rankeval.model_selection.validation import cross_validate as cross_validate
from rankeval.model_selection.validation import learning_curve as learning_curve
from rankeval.shelf.kinds import load as load
from rankeval.shelf.kinds import read_record as read_record
from rankeval.shelf.kinds import save as save
from rankeval.shelf.record import Record as Record
from rankeval.significance.catalogue import list_tests as list_tests
from rankeval.significance.power import topics_needed as topics_needed
from rankeval.streaming import evaluate_dataset as evaluate_dataset
from rankeval.text.profiling import profile as profile

__version__: str
