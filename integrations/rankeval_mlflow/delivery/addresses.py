"""Addresses of stores: valid from any directory, without secrets on disk, in messages and links, complete for a call.

People and the spool get the bare address: a browser that follows ``http://me:***@host`` would log
in with a wrong password. Whoever sends a record takes the secrets from an address that is the same
but for them: one that is given, or MLflow's present setting. MLflow's own variables
(``MLFLOW_TRACKING_TOKEN`` ...) work as always.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from urllib.parse import quote, unquote

from rankeval._secrets import bare, is_web
from rankeval._visible import markdown
from rankeval_mlflow.run_names import VIEW_ADDRESS


def absolute(uri: str) -> str:
    """Return an address valid from any directory: the path of a SQLite file becomes absolute."""
    prefix = "sqlite:///"
    if not uri.startswith(prefix) or uri.startswith(f"{prefix}:memory:"):
        return uri
    path, question, query = unquote(uri.removeprefix(prefix)).partition("?")
    return f"{prefix}{Path(path).absolute()}{question}{query}" if path else uri


def where_to_look(uri: str, experiment_id: str, run_id: str) -> str:
    """Return the address of a run on a server, or the command that serves a local store.

    MLflow opens in its mode for language models unless the address asks for the one that trains
    models.
    """
    if is_web(uri):
        return f"{bare(uri).rstrip('/')}/#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"
    if uri.startswith("databricks"):
        return f"run {run_id} of experiment {experiment_id} at {uri}"
    return f"mlflow ui --backend-store-uri {shlex.quote(bare(uri))}"


def run_link(run_id: str) -> str:
    """Return a link to a run in Markdown, as a page of MLflow in any experiment opens it."""
    return f"[run {run_id}](#/runs/{run_id})"


def version_link(name: str, version: str) -> str:
    """Return a link to a version of a registered model in Markdown, for a page of MLflow."""
    return (
        f"[{markdown(name)} version {version}](#/models/{quote(name, safe='')}/versions/{version})"
    )


def view_link(experiment_id: str) -> str:
    """Return a link to the runs of an experiment with their measures in Markdown, for a page of MLflow."""
    view = f"workflowType=machine_learning&{VIEW_ADDRESS}"
    return f"[Runs with their measures](#/experiments/{experiment_id}/runs?{view})"


def page_link(run_id: str, path: str) -> str:
    """Return a link to an HTML page among the artifacts of a run in Markdown, for a page of MLflow."""
    return f"[{path}](get-artifact?path={quote(path)}&run_uuid={run_id})"


def now_ms() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000
