"""One alias of one registered model: read it, tag a version, move it; a refusal of the registry is one of our errors.

MLflow sets an alias without asking which version has it (there is no compare-and-set), so `promoting` reads it before
and after.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from mlflow.exceptions import MlflowException

from rankeval._checks import few, shown
from rankeval._registry import unknown
from rankeval.errors import InvalidInput, TrackingError
from rankeval_mlflow.delivery.addresses import hidden, masked
from rankeval_mlflow.delivery.connection import reason
from rankeval_mlflow.reading.resolving import canonical_number, pages

_ALIAS = re.compile(r"(?!latest$|v\d+$)[\w\-]{1,200}", re.IGNORECASE)
_VERSION = re.compile(r"(?:(?:models:/)?(?P<model>[^/@]+)[/@])?(?P<version>[^/@]+)")
_NO_RIGHT = {"PERMISSION_DENIED", "UNAUTHENTICATED", "CUSTOMER_UNAUTHORIZED"}


def checked_alias(alias: Any) -> str:
    """Return an alias that MLflow accepts; raise InvalidInput for another one."""
    if not isinstance(alias, str) or not _ALIAS.fullmatch(alias):
        raise InvalidInput(
            f"alias is {shown(alias)}; expected letters, digits, _ and -, and neither 'latest' nor 'v' with a number, "
            "which MLflow reserves"
        )
    return alias


@contextlib.contextmanager
def asking(uri: str, to: str) -> Iterator[None]:
    """Raise our errors for those of a store that was asked to do something.

    Parameters
    ----------
    uri : str
        The store.
    to : str
        What it was asked, for the message: "move the alias".
    """
    try:
        yield
    except MlflowException as error:
        said = hidden(reason(error), [uri])
        if error.error_code in _NO_RIGHT:
            raise TrackingError(
                f"{masked(uri)} does not let this user {to}: {said}. Whoever promotes needs the right to edit the "
                "registered model, and to write to the experiment of the records"
            ) from error
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise InvalidInput(f"{masked(uri)} could not {to}: {said}") from error
        raise TrackingError(f"{masked(uri)} did not {to}: {said}") from error


@dataclass(frozen=True)
class Alias:
    """An alias of a registered model in one store.

    Attributes
    ----------
    client : MlflowClient
        A client of the store.
    uri : str
        The store, for messages.
    model, name : str
        The registered model, and the alias.
    """

    client: Any
    uri: str
    model: str
    name: str

    def __str__(self) -> str:
        return f"{self.model}@{self.name}"

    def holder(self) -> str | None:
        """Return the version that has the alias now; None if none has it."""
        found = self._aliases().get(self.name)
        return None if found is None else str(found)

    def others(self) -> list[str]:
        """Return the other aliases of the model."""
        return sorted(set(self._aliases()) - {self.name})

    def _aliases(self) -> dict[str, Any]:
        with asking(self.uri, f"read the aliases of {self.model}"):
            try:
                return dict(self.client.get_registered_model(self.model).aliases)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                known = [one.name for one in self.client.search_registered_models(max_results=1000)]
                raise unknown("registered model", self.model, known) from error

    def number_of(self, version: Any) -> str:
        """Return the number of a version that was given in one of the forms of `promote`.

        Raises
        ------
        InvalidInput
            If it is none of them, of another model, or there is no such version.
        """
        if hasattr(version, "version") and hasattr(version, "name"):
            version = f"{version.name}/{version.version}"
        text = str(version).strip()
        found = _VERSION.fullmatch(text)
        if found is None or isinstance(version, bool) or not isinstance(version, (Integral, str)):
            raise InvalidInput(
                f"version is {shown(version)}; expected a number, 'latest', 'models:/{self.model}/7', "
                f"'models:/{self.model}@challenger' or a ModelVersion"
            )
        if found["model"] not in (None, self.model):
            raise InvalidInput(f"version is {text!r}, of the model {found['model']!r}, and {self} is asked for")
        if "@" in text:
            return self._of_alias(found["version"])
        if found["version"].lower() == "latest":
            return self._latest()
        if not found["version"].isdecimal():
            raise InvalidInput(f"there is no version {shown(found['version'])} of {self.model}: versions are numbers")
        return canonical_number(found["version"])

    def _of_alias(self, other: str) -> str:
        aliases = self._aliases()
        if other not in aliases:
            raise unknown(f"alias of {self.model}", other, aliases)
        return str(aliases[other])

    def _latest(self) -> str:
        versions = self.versions()
        if not versions:
            raise InvalidInput(f"{self.model} has no version yet: register one")
        return str(max(int(one.version) for one in versions))

    def versions(self) -> list[Any]:
        """Return all versions of the model."""
        quote = '"' if "'" in self.model else "'"
        with asking(self.uri, f"list the versions of {self.model}"):
            return list(pages(self.client.search_model_versions, f"name={quote}{self.model}{quote}"))

    def version(self, number: str) -> Any:
        """Return a version that may be promoted.

        Raises
        ------
        InvalidInput
            If there is no such version, it is not ready, or it was archived.
        """
        with asking(self.uri, f"read version {number} of {self.model}"):
            try:
                found = self.client.get_model_version(self.model, number)
            except MlflowException as error:
                if error.error_code not in {"RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE"}:
                    raise
                there = sorted((int(one.version) for one in self.versions()), reverse=True)
                raise InvalidInput(
                    f"{self.model} has no version {number}, or it was deleted; its versions are {few(there) or 'none'}"
                ) from error
        if found.status not in {None, "READY"}:
            raise InvalidInput(f"version {number} of {self.model} is not ready: its status is {found.status}")
        if found.current_stage == "Archived":
            raise InvalidInput(
                f"version {number} of {self.model} is archived: promote another, or take it out of there"
            )
        return found

    def tag(self, number: str, key: str, value: str) -> None:
        """Set a tag of a version."""
        with asking(self.uri, f"tag version {number} of {self.model}"):
            self.client.set_model_version_tag(self.model, number, key, value)

    def move(self, number: str) -> None:
        """Give the alias to a version, whoever has it."""
        with asking(self.uri, f"move the alias {self}"):
            self.client.set_registered_model_alias(self.model, self.name, number)
