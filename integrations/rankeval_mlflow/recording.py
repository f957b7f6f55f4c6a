"""Log an evaluation, a comparison or a cross-validation to a given run, the active run, or a new run that is ended.

Of a cross-validation the run has the mean over queries, its folds as steps, and if asked for a nested run of each fold.
The tracker writes run records to an experiment, or keeps them on disk.

If an evaluation of a test part is of queries that no ledger knows, a line in the log says once what registering gives.
It is no warning, which would fail the tests of users that turn warnings into errors.
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
from rankeval._checks import require, whole_number
from rankeval.collection.data import RankingData
from rankeval.comparison import Comparison
from rankeval.contamination.hashing import text_hashes
from rankeval.contamination.refusal import ContaminationCheck
from rankeval.contamination.registered import RegisteredContent
from rankeval.errors import LedgerError, TrackingError
from rankeval.evaluation import Evaluation
from rankeval.judging import Agreement, Calibration, Disagreement, Reusability
from rankeval.ledger import discovery
from rankeval.model_selection.results import CrossValidation, CrossValidations
from rankeval.text.profiling import Profile
from rankeval.tracking import LoggedData, RunRecord, TrackedRun
from rankeval_mlflow.delivery.addresses import now_ms, run_context, store
from rankeval_mlflow.delivery.connection import made_once
from rankeval_mlflow.delivery.payload import Node, Payload, Target
from rankeval_mlflow.delivery.sending import deliver
from rankeval_mlflow.layout import PAGE, checked_model_name, folder, safe_name
from rankeval_mlflow.packing.record import cross_validation_node, record_node, several_node
from rankeval_mlflow.packing.results import comparison_node, described, evaluation_node, result_node
from rankeval_mlflow.parameters import with_estimator
from rankeval_mlflow.reading.resolving import model_behind, registered_version
from rankeval_mlflow.saving import saved

# Ids that MLflow takes for runs.
_RUN_ID = re.compile(r"[A-Za-z0-9][\w-]{0,255}")


def send(
    node: Node,
    run_id: str | None,
    model_id: str | None = None,
    model_version: tuple[str, str] | None = None,
    page: str | None = None,
) -> TrackedRun:
    """Send one node to the given run, the active run, or a new run that is ended.

    Parameters
    ----------
    node : Node
        The run's content.
    run_id : str, optional
        The run to write to.
    model_id : str, optional
        The logged model that gets the aggregates.
    model_version : tuple of (name, version), optional
        The version of a registered model that the evaluations are of.
    page : str, optional
        A page of queries, which stands beside its files.
    """
    require(isinstance(page, str | None), "page", page, "a page, as rankeval.report.report_for_queries returns it")
    files = {} if page is None else {f"{folder(node.label)}/{PAGE}": page.encode()}
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

    `mlflow.set_experiment` writes the id to the environment, and a user may set an id or a name there too.
    """
    experiment_id, name = os.environ.get("MLFLOW_EXPERIMENT_ID"), os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment_id:
        return experiment_id, None
    return (None, name) if name else ("0", None)


def hint_at_guard(ev: Evaluation, role: str) -> None:
    """Say once, and in no worker, what registering a test part would give, if no ledger knows its queries.

    Parameters
    ----------
    ev : Evaluation
        The evaluation.
    role : str
        The role of its data.
    """
    if role != "test" or discovery.default_url() is None or multiprocessing.parent_process() is not None:
        return
    try:
        known = any(_holds(one, ev) for _, one in ContaminationCheck.current().contents())
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
    signature, labels = content.signature, content.signature.label_counts
    order = np.argsort(signature.ids)
    ids = text_hashes(ev.queries)
    place = order[np.minimum(np.searchsorted(signature.ids, ids, sorter=order), signature.n_queries - 1)]
    same = signature.ids[place] == ids
    if labels is not None and len(labels.levels):
        relevant = labels.counts[:, labels.levels >= 1].sum(axis=1)
        same &= relevant[place] == ev.facts.query_counts["relevant"]
    return 2 * int(same.sum()) >= ev.n_queries


@explained
def log_evaluation(
    ev: Evaluation,
    role: str = "dev",
    run_id: str | None = None,
    model_id: str | None = None,
    model_version: Any | None = None,
    *,
    data: Dataset | LoggedData | RankingData | str | None = None,
    step: int | None = None,
    report: bool = True,
    slices: Any = None,
    page: str | None = None,
) -> TrackedRun:
    """Log an evaluation to MLflow, synchronously and whole.

    The run gets:

    * the aggregates as metrics, in one batch, under the keys of their measures (``nDCG_at_10``), and the ends of their
      95 % intervals (``nDCG_at_10_ci_low``); an evaluation of a second role in the same run has its metrics under
      ``<role>/<key>``;
    * system, first measure, convention, data and role as parameters, so that runs can be compared and charted;
    * the scores of every query as one Parquet file, from which `load_evaluation` returns the same evaluation;
    * the data set as an input, with its role as context;
    * the worst queries as a table, a report in HTML, and a short description;
    * last, the tag ``rankeval.complete``.

    Parameters
    ----------
    ev : Evaluation
        The evaluation.
    role : str, default "dev"
        The role of the data: "train", "dev", "test" or another plain word. If no ledger knows the queries of a "test",
        a line in the log says once in this process what registering them gives.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended.
    model_id : str, optional
        A logged model that gets the metrics too. By default the active model, if one is set.
    model_version : str or ModelVersion, optional
        A version of a registered model that gets a tag with the first aggregate: ``"ranker/7"``, ``"ranker/latest"`` or
        ``"ranker@champion"``, also with ``models:/`` before it.
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        The data set, or its name. A Dataset of MLflow, such as ``mlflow.data.from_pandas(..., source=)``, says where
        the data lies. The digest of the judgments identifies the data in any case (tag ``rankeval.digest``).
    step : int, optional
        The epoch or other step of training. The metrics of a run's steps become curves. The evaluation at step 3 loads
        back as the role ``"dev/step-3"``, and that of the greatest step as ``"dev"``, as MLflow shows its metrics. A
        role has steps or a single evaluation without one.
    report : bool, default True
        Whether to draw the report. Without it, logging takes less time.
    slices : Series, mapping, DataFrame, array or str, optional
        An attribute of the queries, as in ``Evaluation.slices``: the report has the means of each of its values.
    page : str, optional
        A page of ``rankeval.report.report_for_queries``: the artifact ``queries.html`` beside the report.

    Returns
    -------
    TrackedRun
        The id of the run, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If an argument is something else, the attribute does not fit the queries, the step is no whole number from 0,
        there is no such version, or the run already has an evaluation of this role that is of the same step, on other
        data, or without a step if this one has one (and the other way round).

    Examples
    --------
    >>> import rankeval as rk
    >>> ev = rk.evaluate([1, 0, 1], [0.3, 0.2, 0.1], qid=["a", "a", "b"], measures="nDCG@10", name="bm25")
    >>> run = log_evaluation(ev, role="dev")
    >>> import mlflow
    >>> mlflow.get_run(run.run_id).data.metrics["nDCG_at_10"]
    1.0
    >>> mlflow.get_run(run.run_id).data.params["system"]
    'bm25'
    """
    require(isinstance(ev, Evaluation), "ev", type(ev), "the Evaluation that rankeval.evaluate returned")
    at = whole_number(step)
    is_step = step is None or (at is not None and 0 <= at < 2**31)
    require(is_step, "step", step, "a whole number such as the epoch, 0 or greater")
    node = evaluation_node(ev, role, described(ev, role, data), step=at, report=report, slices=slices)
    version = None if model_version is None else registered_version(model_version)
    tracked = send(node, run_id, model_id or mlflow.get_active_model_id(), version, page)
    hint_at_guard(ev, role)
    return tracked


@explained
def log_comparison(
    cmp: Comparison,
    run_id: str | None = None,
    *,
    name: str = "comparison",
    role: str | None = None,
    data: Dataset | LoggedData | RankingData | str | None = None,
    report: bool = True,
    page: str | None = None,
) -> TrackedRun:
    """Log a comparison to MLflow: its table, its evaluations, its notes and the differences as metrics.

    The metrics are differences: ``difference/nDCG_at_10``, with the ends of its adjusted interval (``_ci_low``,
    ``_ci_high``) and its adjusted p-value (``_p_adjusted``). They hold no name of a system, so that the comparisons of
    many releases are one column and one chart. The parameters ``system`` and ``baseline`` name the pair: the baseline
    and the best of the others. If all pairs of three or more systems are compared, no difference is a metric. The table
    among the artifacts has every pair.

    Parameters
    ----------
    cmp : Comparison
        The comparison.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended.
    name : str, default "comparison"
        The name of the folder for its artifacts. A second comparison in the same run needs another name, which stands
        in its metrics: ``difference/final/nDCG_at_10``.
    role : str, optional
        The role of the data. By default "test" if a guard opened the comparison, else "dev".
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        As for `log_evaluation`. Systems that were compared as frames say nothing of their data.
    report : bool, default True
        Whether to draw the page with table and plot.
    page : str, optional
        A page of ``rankeval.report.report_for_queries``: the artifact ``queries.html`` beside the report.

    Returns
    -------
    TrackedRun
        The id of the run, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If the role or the name is no plain word, or the run already has another comparison of this name.

    Examples
    --------
    >>> import rankeval as rk
    >>> truth = {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 1}, "q3": {"a": 1, "b": 1}}
    >>> runs = {"first": {q: {"a": 2, "b": 1} for q in truth}, "other": {q: {"a": 1, "b": 2} for q in truth}}
    >>> evaluations = {name: rk.evaluate(truth, run, measures="RR") for name, run in runs.items()}
    >>> run = log_comparison(rk.compare(evaluations, baseline="first"))
    >>> run.run_id == log_comparison(rk.compare(evaluations, baseline="other"), run.run_id, name="swapped").run_id
    True
    """
    require(isinstance(cmp, Comparison), "cmp", type(cmp), "the result of rankeval.compare")
    return send(comparison_node(cmp, name, role=role, data=data, report=report), run_id, page=page)


@explained
def log_agreement(
    agreement: Agreement | Calibration | Disagreement | Reusability,
    run_id: str | None = None,
    *,
    name: str | None = None,
    report: bool = True,
) -> TrackedRun:
    """Log a result of ``rankeval.judging`` to MLflow: its tables, its notes, and its numbers as metrics.

    The metrics of an Agreement are its coefficients: ``agreement/krippendorff_alpha``, with the ends of its interval
    (``_ci_low``, ``_ci_high``). One that is undefined is no metric; ``notes.txt`` among the artifacts says why. The
    metrics of a Calibration are its estimates: ``calibration/nDCG_at_10``, with the adjusted interval and p-value, and
    the ``_gain``; of several pairs of systems none is a metric, and the table has every pair. Those of a Disagreement
    are the agreement of orders under each set of judgments: ``disagreement/union_tau_b``. A Reusability has tables.

    Parameters
    ----------
    agreement : Agreement, Calibration, Disagreement or Reusability
        The result of a function of ``rankeval.judging``, such as `rankeval.judging.agreement`.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended.
    name : str, optional
        The name of the folder for its artifacts; by default the kind of the result, such as "agreement". A second
        result of a kind in the same run needs another name, which stands in its metrics:
        ``agreement/final/krippendorff_alpha``.
    report : bool, default True
        Whether to draw the page with table and picture.

    Returns
    -------
    TrackedRun
        The id of the run, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If it is no result of judging, the name is no plain word, or the run already has another piece of this name.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> ann = {f"q{i}": {"a": 1, "b": 0, "c": i % 2} for i in range(10)}
    >>> llm = {f"q{i}": {"a": 1, "b": 0, "c": 0} for i in range(10)}
    >>> run = log_agreement(rk.judging.agreement({"ann": ann, "llm": llm}))
    >>> found = mlflow.get_run(run.run_id).data
    >>> round(found.metrics["agreement/observed"], 4), found.params["judges"]
    (0.8333, 'ann, llm')
    """
    return send(result_node(agreement, name, report=report, argument="agreement"), run_id)


@explained
def log_profile(profile: Profile, run_id: str | None = None, *, name: str | None = None) -> TrackedRun:
    """Log the cost of a search to MLflow: its numbers as metrics, its tables and its notes.

    The metrics are ``profile/latency_p50_ms``, ``profile/queries_per_second`` and the like, with the ends of their
    intervals (``_ci_low``, ``_ci_high``); `rankeval.Profile` has the list. Those of a profile with a name have it
    within, ``profile/bm25/latency_p50_ms``, so that a run holds several. The latency of each query is the artifact
    ``per_query.csv``.

    Parameters
    ----------
    profile : Profile
        The result of `rankeval.profile`.
    run_id : str, optional
        The run to write to, such as that of the system's evaluation. By default the active run, else a new run that is
        ended.
    name : str, optional
        The name of the folder for its artifacts, which stands in its metrics; by default that of the profile, with _
        for what is no letter or digit, or "profile" if it has none. A second one in the same run needs another name.

    Returns
    -------
    TrackedRun
        The id of the run, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If it is no profile, the name is no plain word, or the run already has another piece of this name.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> run = log_profile(rk.profile(str.split, {"q1": "new guinea", "q2": "economy"}, index_bytes=5_000))
    >>> mlflow.get_run(run.run_id).data.metrics["profile/index_bytes"]
    5000.0
    """
    require(isinstance(profile, Profile), "profile", type(profile), "the result of rankeval.profile")
    word = name or re.sub("[^a-zA-Z0-9]+", "_", profile.name).strip("_")[:64]
    return send(result_node(profile, word, report=False), run_id)


@explained
def log_online(result: Any, run_id: str | None = None, *, name: str | None = None, report: bool = True) -> TrackedRun:
    """Log a result of ``rankeval.online`` to MLflow: its tables, its notes, and its numbers as metrics.

    The metrics have the kind of the result before them, with the ends of their intervals (``_ci_low``, ``_ci_high``):

    * an A/B test: ``ab_test/A/users``, the users of an arm; ``ab_test/sample_ratio``, whose adjusted p-values are
      missing if it is below .001; ``ab_test/ctr``, the difference of the arms, with ``_relative`` and
      ``_p_adjusted``; of three arms or more, each arm has its own, ``ab_test/B/ctr``;
    * click rates: ``click_rate/position_1``; of abandonment ``abandonment/all``; of more than 100 groups none is a
      metric;
    * checks of a log: ``log_checks/impressions without a click``;
    * propensities: ``propensities/position_2``; a click model: ``perplexity/all``;
    * the value of a policy: ``policy_value/snips``, with ``_effective_share`` and ``_effective_clicks``;
    * a comparison of interleaved rankings is logged as by `log_comparison`: ``difference/online/credit``.

    Parameters
    ----------
    result : ABTest, ClickRates, LogChecks, Perplexity, PolicyValue, Propensities or Comparison
        The result.
    run_id : str, optional
        The run to write to, such as that of the offline evaluation. By default the active run, else a new run that is
        ended.
    name : str, optional
        The name of the folder for its artifacts; by default the kind of the result, and "online" for a comparison. A
        second result of a kind in the same run needs another name, which stands in its metrics: ``ab_test/june/ctr``.
    report : bool, default True
        Whether to draw the page with table and picture.

    Returns
    -------
    TrackedRun
        The id of the run, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If it is no such result, the name is no plain word, or the run already has another piece of this name.

    Examples
    --------
    >>> import mlflow
    >>> import pandas as pd
    >>> from rankeval.online import ClickLog
    >>> rows = {"impression": ["i1", "i1", "i2"], "position": [1, 2, 1], "docid": list("aba"), "clicked": [1, 0, 0]}
    >>> run = log_online(ClickLog.from_frame(pd.DataFrame(rows)).click_rates())
    >>> mlflow.get_run(run.run_id).data.metrics["click_rate/position_1"]
    0.5
    """
    if isinstance(result, Comparison):
        return log_comparison(result, run_id, name=name or "online", report=report)
    return send(result_node(result, name, report=report), run_id)


@explained
def log_cross_validation(
    cv: CrossValidation | CrossValidations,
    *,
    role: str = "dev",
    data: Dataset | LoggedData | RankingData | str | None = None,
    name: str | None = None,
    run_id: str | None = None,
    folds: bool = False,
) -> TrackedRun:
    """Log a cross-validation to MLflow, synchronously and whole.

    The run gets the evaluation of every held-out query, as from `log_evaluation`: ``nDCG_at_10`` is the mean over
    queries, each scored by the model that did not see it, and `load_evaluation` returns it. Beside it:

    * the parameters of the ranker, by name (``num_leaves``; ``ranker__num_leaves`` of a step of a Pipeline), so that
      candidates differ in columns. A value that MLflow would cut is whole in ``params.json``; a function is its name,
      and a password or token ``***``;
    * the value of each fold as a step of ``nDCG_at_10_fold``, which MLflow draws as a line;
    * their standard deviation as ``nDCG_at_10_sd``, with n - 1;
    * size and seconds of each fold, also as steps; a table of the folds, with the parameters that a search chose.

    Parameters
    ----------
    cv : CrossValidation or CrossValidations
        The result of `rankeval.cross_validate`. If it has several rankers, each is a nested run.
    role : str, default "dev"
        The role of the data.
    data : mlflow.data.Dataset, LoggedData, RankingData or str, optional
        The data set, or its name. A Dataset of MLflow, such as ``mlflow.data.from_pandas(..., source=)``, says where
        the data lies. The digest of the judgments identifies the data in any case (tag ``rankeval.digest``).
    name : str, optional
        Name of the run; by default that of the ranker.
    run_id : str, optional
        The run to write to. By default the active run, else a new run that is ended. The time of a new run is that of
        its folds, one after the other.
    folds : bool, default False
        Whether each fold is a nested run too.

    Returns
    -------
    TrackedRun
        The id of the run, those of its children, and a line that says how to look at it.

    Raises
    ------
    TrackingError
        If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it.
    InvalidInput
        If ``cv`` is something else, the role is no plain word, or the run has another evaluation of this role.

    Examples
    --------
    >>> import mlflow
    >>> import rankeval as rk
    >>> from sklearn.linear_model import Ridge
    >>> data = rk.datasets.make_ranking(30, 10, rng=0)
    >>> run = log_cross_validation(rk.cross_validate(Ridge(), data, measures="AP", cv=3), data="made up")
    >>> {"AP", "AP_fold", "AP_sd"} <= set(mlflow.get_run(run.run_id).data.metrics), len(run.children)
    (True, 0)
    """
    require(isinstance(cv, CrossValidation | CrossValidations), "cv", type(cv), "the result of rankeval.cross_validate")
    ended, nodes = now_ms(), {}
    for system, one in (cv.results if isinstance(cv, CrossValidations) else {name: cv}).items():
        used = described(one.evaluation, role, data)
        nodes[str(system)] = cross_validation_node(one, role, used, ended_ms=ended, name=system, children=folds)
        hint_at_guard(one.evaluation, role)
    if isinstance(cv, CrossValidation):
        return send(nodes[str(name)], run_id)
    return send(several_node(nodes, cv.folds, ended_ms=ended, name=name or "cross-validation"), run_id)


class MlflowTracker:
    """Writes a run record to MLflow as a run with nested runs."""

    def log(self, record: RunRecord, *, experiment: str, uri: str | None = None) -> TrackedRun:
        """Write a record and its children to new runs.

        Parameters
        ----------
        record : RunRecord
            The record.
        experiment : str
            Name of the experiment, which is made if it does not exist.
        uri : str, optional
            The tracking store; by default MLflow's own setting.

        Returns
        -------
        TrackedRun
            The ids of the run and its children, and a line that says how to look at them.

        Raises
        ------
        TrackingError
            If the store cannot be reached or refuses. Everything is kept on disk, and the message says how to send it
            again.
        InvalidInput
            If the experiment was deleted, or a role or the path of an artifact is not allowed.
        """
        target = Target(uri=store(uri), experiment_name=experiment)
        return deliver(Payload(target, record_node(record), now_ms(), run_context(), key=record.key))


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
        columns in order and leaves others out, such as ``qid``; and the saved model must give the same scores. The
        first three rows are kept as the input example, which everybody sees who sees the model. Columns of categories
        are coded by the categories of ``fit``, from texts too; if the ranker is no QueryRanker, by those of X. Whole
        numbers and truth values may be missing in a request if the ranker scores that, whether X has gaps or not.
        Without X there is no signature. Then a model of LightGBM or CatBoost takes columns by their place, not by name:
        a frame in another order than that of ``fit`` gets other scores, and no error. So does any MLflow model of these
        libraries without a signature.
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
        would give other scores once loaded; the ranker scores missing whole numbers of X (pandas' Int64) differently
        as floats, or scores missing texts differently as None and as NaN; or there are categories, and X is not given,
        or a category is not a text, a number or a truth value.
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
    run = send(with_estimator(node, getattr(ranker, "best_estimator_", ranker)), run_id)
    model_id = run.models[0]
    version = None if registered_model_name is None else _registered(model_id, registered_model_name)
    return LoggedRanker(model_id, f"models:/{model_id}", run, registered_model_name, version)


def _registered(model_id: str, name: str) -> str:
    uri = f"models:/{model_id}"

    def there() -> list[Any]:
        versions = mlflow.MlflowClient().search_model_versions(f"name = '{name}'")
        return [one for one in versions if model_behind(one) == model_id]

    try:
        return str(made_once(lambda: mlflow.register_model(uri, name), there)[0].version)
    except MlflowException as error:
        raise TrackingError(
            f"the model is logged as {uri}, and cannot be registered as {name!r}: {error.message}. "
            f"Register it with:  mlflow.register_model({uri!r}, {name!r})"
        ) from error
