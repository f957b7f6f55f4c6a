"""Log any result to a given run, the active run, or a new run that is ended.

Of a cross-validation the run has the mean over queries, its folds as steps, and if asked for a
nested run of each fold. The tracker writes run records to an experiment, or keeps them on disk.

If an evaluation of a test part is of queries that no ledger knows, a line in the log says once what
registering gives. It is no warning, which would fail the tests of users that turn warnings into
errors.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import mlflow
import numpy as np
from mlflow.data.dataset import Dataset
from mlflow.exceptions import MlflowException

from rankeval._arguments import explained
from rankeval._checks import refuse, require
from rankeval._display import Displayed, View
from rankeval._secrets import hidden
from rankeval.collection.data import RankingData
from rankeval.contamination.hashing import text_hashes
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.contamination.registered import RegisteredContent
from rankeval.errors import LedgerError, TrackingError
from rankeval.evaluation import Evaluation
from rankeval.ledger import discovery
from rankeval.model_selection.results import CrossValidation, CrossValidations
from rankeval.shelf.kinds import record_of
from rankeval.shelf.record import Record
from rankeval.tracking import LoggedData, RunRecord, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms
from rankeval_mlflow.delivery.connection import made_once, run_context, store
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.packing.nodes import beside_others, node_of, with_given, with_texts
from rankeval_mlflow.packing.record import record_node
from rankeval_mlflow.parameters import with_estimator
from rankeval_mlflow.reading.resolving import model_behind, registered_version
from rankeval_mlflow.run_names import PAGE, checked_model_name, folder, safe_name
from rankeval_mlflow.saving import saved

_NO_NAME = "dataset"  # MLflow's name of a data set without one
_LONGEST = 1_000_000  # the schema of more columns is refused by the server
# Ids that MLflow takes for runs.
_RUN_ID = re.compile(r"[A-Za-z0-9][\w-]{0,255}")


def send_node(
    node: Node,
    run_id: str | None,
    model_id: str | None = None,
    model_version: tuple[str, str] | None = None,
    page: str | None = None,
) -> TrackedRun:
    """Send one node to the given run, the active run, or a new run that is ended."""
    require(
        isinstance(page, str | None),
        "page",
        page,
        "a page, as rankeval.report.report_for_queries returns it",
    )
    if page is not None:
        files = {f"{folder(node.label)}/{PAGE}": page.encode()}
        node = replace(node, files={**node.files, **files})
    is_id = run_id is None or (isinstance(run_id, str) and _RUN_ID.fullmatch(run_id) is not None)
    require(is_id, "run_id", run_id, "the id of a run, such as .run_id of a TrackedRun")
    active = mlflow.active_run()
    run_id = run_id or (active.info.run_id if active else None)
    experiment_id, experiment_name = (None, None) if run_id else _experiment()
    target = Target(
        uri=store(None),
        registry_uri=mlflow.get_registry_uri(),
        run_id=run_id,
        experiment_id=experiment_id,
        experiment_name=experiment_name,
    )
    return deliver(Payload(target, node, now_ms(), run_context(), model_id, model_version))


def _experiment() -> tuple[str | None, str | None]:
    """Return id or name of the experiment for new runs, without asking the server.

    `mlflow.set_experiment` writes the id to the environment, and a user may set an id or a name
    there too.
    """
    experiment_id = os.environ.get("MLFLOW_EXPERIMENT_ID")
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment_id:
        return experiment_id, None
    return (None, name) if name else ("0", None)


def hint_at_guard(ev: Evaluation, role: str) -> None:
    """Say once, and in no worker, what registering a test part would give, if no ledger knows its queries."""
    if (
        role != "test"
        or discovery.default_url() is None
        or multiprocessing.parent_process() is not None
    ):
        return
    try:
        known = any(_holds(content, ev) for _, content in ContaminationCheck.current().contents())
    except LedgerError:  # nobody can say, and the evaluation is logged all the same
        return
    if not known:
        _say_once()


@cache
def _say_once() -> None:
    logging.getLogger("rankeval_mlflow").warning(
        "rankeval: no ledger knows these test queries. After test = rankeval.Guard('PROJECT').register('NAME', X, y, "
        "qid=qid), or with qrels=qrels, tuning on them is refused, each look at them is counted, and a gate decides on "
        "releases within a budget. RANKEVAL_LEDGER=off ends this hint."
    )


def _holds(content: RegisteredContent, ev: Evaluation) -> bool:
    """Return whether half of the queries are registered: the same id, and as many relevant documents if labels tell."""
    signature = content.signature
    labels = content.signature.label_counts
    order = np.argsort(signature.ids)
    ids = text_hashes(ev.queries)
    place = order[
        np.minimum(np.searchsorted(signature.ids, ids, sorter=order), signature.n_queries - 1)
    ]
    same = signature.ids[place] == ids
    if labels is not None and len(labels.levels):
        relevant = labels.counts[:, labels.levels >= 1].sum(axis=1)
        same &= relevant[place] == ev.facts.query_counts["relevant"]
    return 2 * int(same.sum()) >= ev.n_queries


@explained
def log(
    result: Any,
    run_id: str | None = None,
    *,
    name: str | None = None,
    role: str | None = None,
    data: Dataset | LoggedData | RankingData | str | None = None,
    step: int | None = None,
    slices: Any = None,
    folds: bool | None = None,
    report: bool = True,
    needs: Any = None,
    page: str | None = None,
    model_id: str | None = None,
    model_version: Any | None = None,
) -> TrackedRun:
    """Log a result to MLflow, synchronously and whole: its numbers, its tables, its data set, and a page.

    An Evaluation gives the run:

    * the aggregates as metrics, in one batch, under the keys of their measures (``nDCG_at_10``), and the ends of their
      95 % intervals (``nDCG_at_10_ci_low``); an evaluation of a second role in the same run has its
      metrics under ``<role>/<key>``;
    * system, first measure, convention, data and role as parameters, so that runs can be compared and charted;
    * the scores of every query as one Parquet file, from which `load` returns the same evaluation;
    * the data set as an input, with its role as context;
    * the worst queries as a table, a report in HTML, and a short description;
    * last, the tag ``rankeval.complete``.

    A CrossValidation gives it the evaluation of every held-out query, each scored by the model that
    did not see it, and beside that the parameters of the ranker by name (a password or token is
    ``***``), the value of each fold as a step of ``nDCG_at_10_fold``, their standard deviation
    (``nDCG_at_10_sd``), and size and seconds of each fold. Of CrossValidations, each ranker is a
    nested run.

    A Comparison gives it differences: ``difference/nDCG_at_10``, with the ends of its adjusted
    interval (``_ci_low``, ``_ci_high``) and its adjusted p-value (``_p_adjusted``). They contain
    no name of a system, so that the comparisons of many releases are one column and one chart. The
    parameters ``system`` and ``baseline`` name the pair: the baseline and the best of the others.
    If all pairs of three or more systems are compared, no difference is a metric.

    A study of Optuna gives it a nested run for each trial that has ended: the parameters, the value
    of each measure, each fold as a step of ``nDCG_at_10_fold``, and the tag ``rankeval.trial``
    ("complete", "pruned" or "fail"). The best trial has the tag ``rankeval.best``, "yes". The run of
    the study has its value, its parameters in the description, and a link to it. The same study
    again, from any process, adds the trials that ended since to the same run; in a run of yours it
    is logged beside the rest. A study with an objective of your own has its values, and what its
    trials reported.

    Other results have their kind before their metrics, and the ends of intervals behind them:

    * of judging: ``agreement/krippendorff_alpha``; ``calibration/nDCG_at_10``, with ``_gain`` and ``_p_adjusted``;
      ``disagreement/union_tau_b``; a Reusability has tables;
    * of online evaluation: ``ab_test/A/users``, ``ab_test/sample_ratio``, and the difference of the arms as
      ``ab_test/ctr``, with ``_relative`` and ``_p_adjusted``, of three arms or more
      ``ab_test/B/ctr``; ``click_rate/position_1``; ``log_checks/impressions without a click``;
      ``propensities/position_2``; ``perplexity/all``; ``policy_value/snips``, with
      ``_effective_share`` and ``_effective_clicks``;
    * of `rankeval.profile`: ``profile/latency_p50_ms``, ``profile/queries_per_second`` and others; those of a profile
      with a name have it within, ``profile/bm25/latency_p50_ms``.

    An undefined number is not logged as a metric; ``notes.txt`` among the artifacts says why. A
    table of more than 100 rows, such as the rate of each document, gives no metrics.

    Parameters
    ----------
    result : Evaluation, CrossValidation, CrossValidations, Comparison or another result
        The result of `rankeval.evaluate`, `rankeval.cross_validate`, `rankeval.compare`,
        `rankeval.profile`, or of ``rankeval.judging`` or ``rankeval.online``; or a study of Optuna.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended. The time of a
        new run of a cross-validation is that of its folds, one after the other.
    name : str, optional
        For a cross-validation, the name of its new run. For a Comparison and the other results, the
        name of the folder for its artifacts, by default the kind. A second one of a kind in the
        same run needs another name, which is part of its metrics: ``difference/final/nDCG_at_10``,
        ``agreement/final/observed``.
    role : str, optional
        The role of the data: "train", "dev", "test" or another plain word; by default "dev", and
        "test" of a comparison that a guard opened. If no ledger knows the queries of a "test", a
        line in the log says once in this process what registering them gives.
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        The data set, or its name; a study takes none. A Dataset of MLflow, such as ``mlflow.data.from_pandas(...,
        source=)``, says where the data lies. The digest of the judgments identifies the data in any
        case (tag ``rankeval.digest``).
    step : int, optional
        The epoch or other step of training, only for an Evaluation. The metrics of a run's steps
        become curves. The evaluation at step 3 loads back as the role ``"dev/step-3"``, and that of
        the greatest step as ``"dev"``, as MLflow shows its metrics. A role has steps or a single
        evaluation without one.
    slices : Series, mapping, DataFrame, array or str, optional
        An attribute of the queries, as in ``Evaluation.slices``, only for an Evaluation. The report
        has the means of each of its values.
    folds : bool, optional
        Whether each fold is a nested run too, only for a cross-validation.
    report : bool, default True
        Whether to draw the page. Without it, logging takes less time.
    needs : mapping, Series, frame or path, optional
        The texts of queries by id, as in ``rankeval.report.report_for_queries``, for the page of an
        evaluation, a cross-validation or a comparison: it has them beside the ids. The server gets
        these texts.
    page : str, optional
        A page of ``rankeval.report.report_for_queries``: the artifact ``queries.html`` beside the
        report.
    model_id : str, optional
        A logged model that gets the metrics too, only for an Evaluation. By default the active
        model, if one is set.
    model_version : str or ModelVersion, optional
        A version of a registered model that gets a tag with the first aggregate, only for an
        Evaluation: ``"ranker/7"``, ``"ranker/latest"`` or ``"ranker@champion"``, also with
        ``models:/`` before it.

    Returns
    -------
    TrackedRun
        The id of the run, those of its children, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says
        how to send it.
    InvalidInput
        If it is not a result, a study without a trial that has ended or with trials of different
        measures, or a result that an option does not belong to; the role or the name is not a plain
        word; the attribute does not fit the queries; the version does not exist; or the run already
        has another result of this name, or an evaluation of this role that is of the same
        step, on other data, or without a step if this one has one (and the other way round).

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="nDCG@10", name="bm25")
    >>> run = log(ev, role="dev")
    >>> logged = mlflow.get_run(run.run_id).data
    >>> logged.metrics["nDCG_at_10"], logged.params["system"]
    (1.0, 'bm25')
    """
    data_name, facts = _name_and_given(data)
    options = {"role": role, "data": data_name, "step": step, "slices": slices, "folds": folds}
    options = {option: value for option, value in options.items() if value is not None}
    if isinstance(result, CrossValidation | CrossValidations):
        options |= {"predictions": False} | ({} if name is None else {"name": name})
    is_evaluation = isinstance(result, Evaluation)
    of_a_model = model_id is not None or model_version is not None
    refuse(
        (
            of_a_model and not is_evaluation,
            "model_id= and model_version= belong to an Evaluation",
            "log cv.evaluation for the version",
        ),
        (
            name is not None and is_evaluation,
            "name= does not belong to an Evaluation",
            "evaluate(name=) has its name",
        ),
    )
    record = record_of(result, options)
    node = with_given(node_of(record, _label(record, name), report=report), facts)
    node = with_texts(node, needs)
    if record.kind == "study" and (run_id or mlflow.active_run()):
        node = beside_others(node)
    version = None if model_version is None else registered_version(model_version)
    model_id = model_id or (mlflow.get_active_model_id() if is_evaluation else None)
    tracked = send_node(node, run_id, model_id, version, page)
    for evaluation in _evaluations(result):
        hint_at_guard(evaluation, role or "dev")
    return tracked


def _name_and_given(data: Any) -> tuple[Any, dict[str, str]]:
    """Return the name of a data set of MLflow, and what it says of itself; anything else stays, and says nothing."""
    if not isinstance(data, Dataset):
        is_data = data is None or isinstance(data, str | RankingData | LoggedData)
        require(
            is_data,
            "data",
            type(data),
            "its name, an mlflow.data.Dataset, RankingData or LoggedData",
        )
        return data, {}
    facts = {key: str(value) for key, value in data.to_dict().items() if key != "name" and value}
    short = {key: text for key, text in facts.items() if len(text) <= _LONGEST}
    short["source"] = hidden(facts["source"])
    return None if data.name == _NO_NAME else data.name, short


def push(
    record: Record, *, name: str, experiment: str, uri: str | None = None, run: str | None = None
) -> TrackedRun:
    """Send a record to a run, or to a new one with the name of its folder."""
    target = Target(uri=store(uri), run_id=run, experiment_name=None if run else experiment)
    return deliver(Payload(target, replace(node_of(record), name=name), now_ms(), run_context()))


def _label(record: Record, name: str | None) -> str:
    """Return the folder of a result: its name, as a plain word, or its kind."""
    return name or re.sub("[^a-zA-Z0-9]+", "_", record.name).strip("_")[:64] or record.kind


def _evaluations(result: Any) -> list[Evaluation]:
    if isinstance(result, CrossValidations):
        return [*result.evaluations.values()]
    if isinstance(result, CrossValidation):
        return [result.evaluation]
    return [result] if isinstance(result, Evaluation) else []


class MlflowTracker:
    """Writes a run record to MLflow as a run with nested runs."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write a record and its children to new runs."""
        target = Target(uri=store(uri), experiment_name=experiment)
        return deliver(
            Payload(target, record_node(record), now_ms(), run_context(), key=record.key)
        )


@dataclass(frozen=True, repr=False)
class LoggedRanker(Displayed):
    """A logged model."""

    model_id: str  # The id of the logged model, as for ``log(..., model_id=)``
    model_uri: str  # The address for ``mlflow.pyfunc.load_model`` and ``load_evaluation``
    run: TrackedRun  # The run that it belongs to
    registered_model_name: str | None = None  # The registered model, if it was registered
    version: str | None = None  # Its version there

    def _view(self) -> View:
        name = self.registered_model_name
        version = "" if name is None else f", version {self.version} of {name}"
        return View([f"LoggedRanker({self.model_uri!r}{version})", self.run.where])


@explained
def log_ranker(
    ranker: Any,
    name: str = "ranker",
    *,
    X: Any = None,
    run_id: str | None = None,
    registered_model_name: str | None = None,
) -> LoggedRanker:
    """Log a fitted ranker as a model of MLflow that needs no rankeval to predict.

    The model is written in the flavour of its own library: LightGBM, XGBoost, CatBoost or
    scikit-learn. It loads with ``mlflow.pyfunc.load_model`` and gives the scores of the ranker, to
    the last bit, after early stopping too. rankeval's classes are taken out: a
    `rankeval.QueryRanker` around or inside a Pipeline, and a search, whose best estimator is
    logged. Requirements are those of the file, with the installed versions.

    Parameters
    ----------
    ranker : object
        A fitted QueryRanker, ranker, regressor or classifier, or a Pipeline or search with one.
    name : str, default "ranker"
        Name of the model.
    X : RankingData, array, sparse matrix or frame of shape (n_rows, n_features), optional
        Rows to rank, such as those of ``fit``. From them the signature is inferred, by which a
        served model puts columns in order and leaves others out, such as ``qid``; and the saved
        model must give the same scores. The first three rows are kept as the input example, which
        everybody with access to the model sees. Columns of categories are coded by the categories
        of ``fit``, from texts too; if the ranker is not a QueryRanker, by those of X. Whole numbers
        and truth values may be missing in a request if the ranker scores that, whether X has gaps
        or not. Without X there is no signature. Then a model of LightGBM or CatBoost takes columns
        by their place, not by name: a frame in another order than that of ``fit`` gets other
        scores, and no error. So does any MLflow model of these libraries without a signature.
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
        If MLflow does not take the name for a model; the ranker is not fitted, cannot predict
        without rankeval, or would give other scores once loaded; the ranker scores missing whole
        numbers of X (pandas' Int64) differently as floats, or scores missing texts differently as
        None and as NaN; or there are categories, and X is not given, or a category is not a text, a
        number or a truth value.
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says
        how to send it. A model that is logged but could not be registered is named.

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
    run = send_node(with_estimator(node, getattr(ranker, "best_estimator_", ranker)), run_id)
    model_id = run.models[0]
    version = (
        None if registered_model_name is None else _registered(model_id, registered_model_name)
    )
    return LoggedRanker(model_id, f"models:/{model_id}", run, registered_model_name, version)


def _registered(model_id: str, name: str) -> str:
    uri = f"models:/{model_id}"

    def there() -> list[Any]:
        versions = mlflow.MlflowClient().search_model_versions(f"name = '{name}'")
        return [version for version in versions if model_behind(version) == model_id]

    try:
        return str(made_once(lambda: mlflow.register_model(uri, name), there)[0].version)
    except MlflowException as error:
        raise TrackingError(
            f"the model is logged as {uri}, and cannot be registered as {name!r}: {error.message}. "
            f"Register it with:  mlflow.register_model({uri!r}, {name!r})"
        ) from error
