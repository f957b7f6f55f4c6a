"""Find the run that a name means.

A name is the id of a run, a logged model, or a version of a registered model. A version leads to
its evaluation by the tag ``rankeval.evaluation`` that `log` wrote, else by the logged model that it
was made from, else by the run that it was made in. A logged model leads to the runs that logged
metrics for it. If several runs hold an evaluation of the role with the same content, the newest one
is meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rankeval._checks import few, refuse, require, shown
from rankeval._registry import unknown
from rankeval.errors import InvalidInput
from rankeval_mlflow.delivery.connection import NOT_READ, asking, existing
from rankeval_mlflow.delivery.payload import pieces_by_role, pieces_of
from rankeval_mlflow.run_names import evaluated_runs, role_of

_FORMS = (
    "the id of a run, 'models:/ranker/3', 'models:/ranker/latest', 'models:/ranker@champion', 'models:/m-...', or what "
    "rankeval_mlflow.log or MLflow returned"
)
_VERSIONS = "a version of a registered model: 'ranker/7', 'ranker/latest', 'ranker@champion' or a ModelVersion"
_MODEL_ID = re.compile(r"m-[0-9a-f]{32}")
# A name of MLflow's has no slash, but it may have an @.
_VERSION = re.compile(r"(?P<name>[^/]+)/(?P<version>\d{1,18})")  # fits the integers of any store
_ALIAS = re.compile(r"(?P<name>[^/]+)(?:@|/(?=(?i:latest)$))(?P<alias>[^/@]+)")


def pages(search: Any, *arguments: Any, **options: Any) -> Iterator[Any]:
    """Yield the results of a search of MLflow, page by page."""
    token = None
    while True:
        page = search(*arguments, page_token=token, **options)
        yield from page
        token = page.token
        if not token:
            return


def experiment_ids(client: Any, name: str | None) -> list[str]:
    """Return the id of one experiment, or of all."""
    if name is None:
        return [experiment.experiment_id for experiment in pages(client.search_experiments)]
    named = client.get_experiment_by_name(name)
    if named is None:
        raise unknown(
            "experiment", name, [experiment.name for experiment in pages(client.search_experiments)]
        )
    return [named.experiment_id]


@dataclass(frozen=True)
class _Name:
    """A name taken apart: the id of a run or of a logged model, or a registered model with version or alias."""

    run_id: str = ""
    model_id: str = ""
    registered: str = ""
    version: str = ""
    alias: str = ""


def resolve(client: Any, name: Any, role: str | None = None) -> Any:
    """Return the run that a name means."""
    require(role is None or isinstance(role, str), "role", role, "a text such as 'dev' or 'test'")
    parts = _parsed(name)
    if parts.run_id:
        return run_with(client, parts.run_id)
    if parts.model_id:
        return _of_model(client, parts.model_id, role)
    return _of_version(client, _version(client, parts), role)


def evaluation_meant(client: Any, name: Any, role: str | None) -> tuple[Any, str | None]:
    """Return the run and the role of the evaluation that a name means; a version names its only one."""
    run, version = resolve(client, name, role), version_meant(client, name)
    logged = {} if version is None or role else evaluated_runs(version.tags)
    return run, chosen_role(text_of(name), logged, None, "") if logged else role


def registered_version(name: Any) -> tuple[str, str]:
    """Return the registered model and version that a name means; only a name without a number needs the registry."""
    parts = _registered(name, "model_version")
    if parts.version:
        return parts.registered, parts.version
    with asking(None, f"models:/{parts.registered}@{parts.alias}") as client:
        version = _version(client, parts)
        return str(version.name), str(version.version)


def version_named(client: Any, name: Any, argument: str, model: str) -> Any:
    """Return the version that a name means, as MLflow's ModelVersion."""
    return _version(client, _registered(name, argument, model))


def version_meant(client: Any, name: Any) -> Any | None:
    """Return the version that a name of `resolve` means, as MLflow's ModelVersion; None if it means a run or model."""
    parts = _parsed(name)
    return _version(client, parts) if parts.registered else None


def _registered(name: Any, argument: str, model: str | None = None) -> _Name:
    parts = _parsed(name, argument, _VERSIONS)
    fits = parts.registered != "" if model is None else parts.registered == model
    require(fits, argument, name, _VERSIONS if model is None else f"one of {model}")
    return parts


def text_of(name: Any) -> str:
    """Return a name in one spelling, for messages and as the name of a system."""
    if isinstance(name, str):
        return name
    parts = _parsed(name)
    if parts.registered:
        return f"models:/{parts.registered}/{parts.version}"
    return parts.run_id or f"models:/{parts.model_id}"


def _parsed(name: Any, argument: str = "name", expected: str = _FORMS) -> _Name:
    """Take a name apart.

    Objects first by the version that they are, then by the run: a ModelInfo of a logged model has a
    run of its own, which made the model and evaluated nothing, so a model's id goes before that.
    """
    parts = _parsed_text(name) if isinstance(name, str) else _parsed_object(name)
    require(parts != _Name(), argument, name, expected)
    return parts


def _parsed_object(name: Any) -> _Name:
    if getattr(name, "version", None) and isinstance(getattr(name, "name", None), str):
        return _Name(registered=name.name, version=str(name.version))
    for holder in (name, getattr(name, "info", None)):
        for field in ("model_id", "run_id"):
            value = getattr(holder, field, None)
            if isinstance(value, str) and value:
                return _Name(**{field: value})
    return _Name()


def _parsed_text(name: str) -> _Name:
    rest = name.removeprefix("models:/")
    if name.startswith("runs:/"):
        return _Name(run_id=name.removeprefix("runs:/").partition("/")[0])
    if _MODEL_ID.fullmatch(rest):
        return _Name(model_id=rest)
    if alias := _ALIAS.fullmatch(rest):
        return _Name(registered=alias["name"], alias=alias["alias"])
    if version := _VERSION.fullmatch(rest):
        return _Name(
            registered=version["name"], version=str(int(version["version"]))
        )  # a store takes "02" for 2
    return _Name(run_id="" if name != rest or {"/", "@"} & set(name) else name)


def run_with(client: Any, run_id: str) -> Any:
    """Return the run with an id."""
    run = existing(client.get_run, run_id, codes=NOT_READ)
    if run is None:
        raise InvalidInput(
            f"there is no run {shown(run_id)} in the store; `rankeval mlflow list` shows the runs with evaluations"
        )
    if is_deleted(run):
        raise InvalidInput(
            f"run {run_id} was deleted, so nothing in it counts; `mlflow runs restore --run-id {run_id}` brings it back"
        )
    return run


def is_deleted(run: Any) -> bool:
    """Return whether a run was deleted."""
    # MLflow still gives a deleted run to whoever asks by its id.
    return bool(run.info.lifecycle_stage == "deleted")


def _version(client: Any, parts: _Name) -> Any:
    get = client.get_model_version_by_alias if parts.alias else client.get_model_version
    held = existing(get, parts.registered, parts.alias or parts.version, codes=NOT_READ)
    if held is None:
        aliases = aliases_of(client, parts.registered)
        if parts.alias:
            raise unknown(f"alias of {parts.registered}", parts.alias, aliases)
        numbers = [int(version.version) for version in versions_of(client, parts.registered)]
        numbers.sort(reverse=True)
        raise InvalidInput(
            f"{parts.registered} has no version {parts.version}, or it was deleted; its versions are "
            f"{few(numbers) or 'none'}"
        )
    return held


def aliases_of(client: Any, model: str) -> dict[str, str]:
    """Return the version of each alias of a registered model."""
    holder = existing(client.get_registered_model, model, codes=NOT_READ)
    if holder is None:
        known = [registered.name for registered in pages(client.search_registered_models)]
        raise unknown("registered model", model, known)
    return {str(alias): str(version) for alias, version in holder.aliases.items()}


def versions_of(client: Any, model: str) -> list[Any]:
    """Return all versions of a registered model."""
    quote = '"' if "'" in model else "'"
    return list(pages(client.search_model_versions, f"name={quote}{model}{quote}"))


def _of_version(client: Any, version: Any, role: str | None) -> Any:
    spelt = f"{version.name}/{version.version}"
    logged = evaluated_runs(version.tags)
    model_id = model_behind(version)
    if not logged and model_id:
        return _of_model(client, model_id, role, spelt)
    base = role and role_of(role)  # of "dev/step-3" dev
    if logged and (base or len(set(logged.values())) > 1):
        chosen_role(f"models:/{spelt}", logged, base, f"it has {sorted(logged)}")
    run_id = logged.get(base or "") or next(iter(logged.values()), version.run_id)
    if not run_id:
        raise InvalidInput(
            f"no run of models:/{spelt} is known: nothing was evaluated with rankeval_mlflow.log(ev, "
            f"model_version='{spelt}'); give the id of the run with its evaluation"
        )
    return run_with(client, run_id)


def model_behind(version: Any) -> str | None:
    """Return the logged model that a version was made from; stores that do not keep its id keep it in the source."""
    source = str(version.source or "").removeprefix("models:/")
    return getattr(version, "model_id", None) or (source if _MODEL_ID.fullmatch(source) else None)


def _of_model(client: Any, model_id: str, role: str | None, version: str = "") -> Any:
    model: Any = existing(client.get_logged_model, model_id, codes=NOT_READ)
    refuse((model is None, f"there is no logged model {model_id} in the store"))
    ids = dict.fromkeys([metric.run_id for metric in model.metrics or ()] + [model.source_run_id])
    runs = [client.get_run(run_id) for run_id in ids if run_id]
    kept = [run for run in runs if not is_deleted(run)]
    argument = f"model_version={version!r}" if version else f"model_id={model_id!r}"
    return _only(f"models:/{version or model_id}", kept, role, argument)


def _only(name: str, runs: Sequence[Any], role: str | None, argument: str) -> Any:
    held = [(run, pieces_by_role(run.data.tags)) for run in runs]
    roles = sorted({label_role for _, labels in held for label_role in labels})
    logs_one = f"log one by rankeval_mlflow.log(ev, {argument}), where ev may be cv.evaluation"
    instead = f"it has {roles}: name one of them, or {logs_one}" if roles else logs_one
    wanted = chosen_role(name, roles, role, instead)
    matching = [
        (run, pieces_of(run.data.tags)[labels[wanted]]) for run, labels in held if wanted in labels
    ]
    ids = few([run.info.run_id for run, _ in matching])
    several = (
        f"{name} has several evaluations of role {wanted!r}; give the id of one of the runs {ids}"
    )
    refuse((len({content for _, content in matching}) > 1, several))
    return max((run for run, _ in matching), key=lambda run: run.info.start_time)


def chosen_role(name: str, roles: Collection[str], role: str | None, instead: str) -> str:
    """Return the role of the evaluation that is meant: the one asked for, or the only one."""
    wanted = role or next(iter(roles), "")
    several = f"{name} has evaluations of the roles {sorted(roles)}; choose one by role="
    refuse(
        (role is None and len(roles) > 1, several),
        (
            wanted not in roles,
            f"{name} has no evaluation{f' of role {role!r}' if role else ''}; {instead}",
        ),
    )
    return wanted
