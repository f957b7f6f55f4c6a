"""Log a fitted ranker as a model of MLflow, and register it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlflow.exceptions import MlflowException

from rankeval.errors import TrackingError
from rankeval.tracking import TrackedRun
from rankeval_mlflow.delivery.payload import Node
from rankeval_mlflow.flavours.saving import saved
from rankeval_mlflow.names import checked_model_name, safe_name
from rankeval_mlflow.recording.runs import send


@dataclass(frozen=True)
class LoggedRanker:
    """A logged model.

    Attributes
    ----------
    model_id : str
        The id of the logged model, as for ``log_evaluation(..., model_id=)``.
    model_uri : str
        The address for ``mlflow.pyfunc.load_model`` and ``load_evaluation``.
    run : TrackedRun
        The run that it belongs to.
    registered_model_name : str, optional
        The registered model, if it was registered.
    version : str, optional
        Its version there.
    """

    model_id: str
    model_uri: str
    run: TrackedRun
    registered_model_name: str | None = None
    version: str | None = None


def log_ranker(
    ranker: Any,
    name: str = "ranker",
    *,
    X: Any = None,
    run_id: str | None = None,
    registered_model_name: str | None = None,
) -> LoggedRanker:
    """Log a fitted ranker as a model of MLflow that needs no rankeval to predict.

    The model is written in the flavour of its own library: LightGBM, XGBoost, CatBoost or scikit-learn. It loads with
    ``mlflow.pyfunc.load_model`` and gives the scores of the ranker, to the last bit, after early stopping too.
    rankeval's classes are taken out: a `rankeval.QueryRanker` around or inside a Pipeline, and a search, whose best
    estimator is logged. Requirements are those of the file, with the installed versions.

    Parameters
    ----------
    ranker : object
        A fitted QueryRanker, ranker, regressor or classifier, or a Pipeline or search with one.
    name : str, default "ranker"
        Name of the model.
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features), optional
        Rows to rank, such as those of ``fit``. From them the signature is inferred, by which a served model puts
        columns in order and leaves others out, such as ``qid``; and the saved model must give the same scores.
        Without X, and with a column of pandas' categories, there is no signature. Then a model of LightGBM or CatBoost
        takes columns by their place, not by name: a frame in another order than that of ``fit`` gets other scores, and
        no error. So does any MLflow model of these libraries without a signature.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended.
    registered_model_name : str, optional
        Register the model under this name, as a new version.

    Returns
    -------
    LoggedRanker
        With ``.model_id``, ``.model_uri`` and ``.version``.

    Raises
    ------
    InvalidInput
        If MLflow does not take the name for a model; the ranker is not fitted, cannot predict without rankeval, or
        would give other scores once loaded; or X has whole numbers with missing values (pandas' Int64), for which
        MLflow has no type.
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it. A
        model that is logged but could not be registered is named.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> data = rk.datasets.make_ranking(30, 10, rng=0)
    >>> ranker = rk.QueryRanker(Ridge()).fit(data.X, data.y, qid=data.qid)
    >>> logged = log_ranker(ranker, X=data, registered_model_name="ranker")
    >>> loaded = mlflow.pyfunc.load_model("models:/ranker/1")
    >>> bool((loaded.predict(data.X) == ranker.predict(data.X)).all())
    True
    """
    model = saved(ranker, checked_model_name(name), X=X)
    node = Node(name=name, label=f"model-{safe_name(name).replace('/', '_')}", models=(model,))
    run = send(node, run_id)
    model_id = run.models[0]
    version = None if registered_model_name is None else _registered(model_id, registered_model_name)
    return LoggedRanker(model_id, f"models:/{model_id}", run, registered_model_name, version)


def _registered(model_id: str, name: str) -> str:
    """Register a logged model; return the new version."""
    import mlflow

    uri = f"models:/{model_id}"
    try:
        return str(mlflow.register_model(uri, name).version)
    except MlflowException as error:
        raise TrackingError(
            f"the model is logged as {uri}, and cannot be registered as {name!r}: {error.message}. "
            f"Register it with:  mlflow.register_model({uri!r}, {name!r})"
        ) from error
