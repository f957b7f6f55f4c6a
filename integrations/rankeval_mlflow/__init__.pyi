# The types of the public names: they are imported lazily, which hides them from type checkers.
# A test compares this list with the one in __init__.py.

from rankeval_mlflow.autologging import autolog as autolog
from rankeval_mlflow.genai import genai_scorer as genai_scorer
from rankeval_mlflow.promotion.explaining import why as why
from rankeval_mlflow.promotion.promoting import promote as promote
from rankeval_mlflow.promotion.promoting import rollback as rollback
from rankeval_mlflow.reading.leaderboards import leaderboard as leaderboard
from rankeval_mlflow.reading.loading import compare_runs as compare_runs
from rankeval_mlflow.reading.loading import load as load
from rankeval_mlflow.reading.loading import load_comparison as load_comparison
from rankeval_mlflow.reading.loading import load_evaluation as load_evaluation
from rankeval_mlflow.recording import log as log
from rankeval_mlflow.recording import log_ranker as log_ranker
