"""A saved ranker as the bytes of one file, so that an experiment keeps it beside a cached result.

The file is a ZIP archive: ``saved.json`` with the name of the flavour and the parameters, and the files of the MLflow
model below ``model/``. Nothing in it is loaded here; `unpacked` returns the files to be logged.
"""

from __future__ import annotations

import io
import json
import zipfile

from rankeval.errors import InvalidInput
from rankeval_mlflow.flavours.saving import Saved

_FACTS, _MODEL = "saved.json", "model/"


def packed(model: Saved) -> bytes:
    """Return a saved ranker as the bytes of one file.

    Parameters
    ----------
    model : Saved
        From `flavours.saving.saved`. Its name is not kept.
    """
    facts = {"params": model.params, "flavor": model.flavor, "tags": model.tags}
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_FACTS, json.dumps(facts))
        for path, content in model.files.items():
            archive.writestr(f"{_MODEL}{path}", content)
    return sink.getvalue()


def unpacked(content: bytes, name: str) -> Saved:
    """Return the saved ranker that `packed` wrote.

    Parameters
    ----------
    content : bytes
        What `packed` returned.
    name : str
        Name of the model.

    Raises
    ------
    InvalidInput
        If these are other bytes.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from rankeval import QueryRanker
    >>> from rankeval_mlflow.flavours.saving import saved
    >>> ranker = QueryRanker(Ridge()).fit([[0.0], [1.0]], [0, 1], qid=["a", "a"])
    >>> model = unpacked(packed(saved(ranker)), "ridge")
    >>> model.name, model.flavor, "MLmodel" in model.files
    ('ridge', 'sklearn', True)
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            facts = json.loads(archive.read(_FACTS))
            files = {path: archive.read(path) for path in archive.namelist() if path.startswith(_MODEL)}
        paths = {path.removeprefix(_MODEL): content for path, content in files.items()}
        return Saved(name, paths, dict(facts["params"]), facts["flavor"], dict(facts["tags"]))
    except (zipfile.BadZipFile, LookupError, ValueError, TypeError, NotImplementedError) as error:
        raise InvalidInput(f"the packed model is damaged: {type(error).__name__}: {error}") from error
