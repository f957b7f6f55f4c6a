"""Makes calls in the environment of one commit: ``python -m oracle.worker JOB.json``.

The job names the calls, the seed and the file for the results; each call is a line of JSON, written
before the next begins. Each call has a folder, a set of environment variables and seeds of its own.
If a call hangs, a watchdog of the interpreter ends the process, and whoever started it goes on with
the next call.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "NUMBA_NUM_THREADS",
)
SETTINGS = {
    **dict.fromkeys(_THREADS, "1"),
    "RANKEVAL_LEDGER": "off",
    "NUMBA_DISABLE_JIT": "1",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MPLBACKEND": "Agg",
    "TZ": "UTC",
    "COLUMNS": "120",
    "LINES": "40",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PYTHONHASHSEED": "0",
    "GIT_PYTHON_REFRESH": "quiet",
}
"""Set before anything is imported: one thread, one time zone and one width for both commits."""


ENTRY_POINTS = {
    "rankeval.hosts": "mlflow",
    "mlflow.model_evaluator": "rankeval",
    "pytest11": "rankeval",
}
"""Groups of entry points, and the name of ours in each."""


def main(path: str) -> None:
    """Make the calls of a job.

    Parameters
    ----------
    path : str
        A file of JSON: ``seed``, ``calls``, ``out``, ``environment``, ``oracle``, ``full``,
        ``limit``, ``rooms``.
    """
    job = json.loads(Path(path).read_text())
    base = Path(tempfile.mkdtemp(prefix="oracle-calls-"))
    home = base / "home"
    home.mkdir()
    os.environ.update({**SETTINGS, "HOME": str(home), "RANKEVAL_SPOOL": str(base / "spool")})
    for name in [
        name for name in os.environ if name.startswith(("MLFLOW_TRACKING", "MLFLOW_EXP", "GITHUB_"))
    ]:
        del os.environ[name]
    os.fsync = lambda _: None  # what is written need not reach the disk
    os.chdir(base)
    _refuse_another_library(job["environment"])
    try:
        _Worker(job, base).run()
    finally:
        os.chdir("/")
        shutil.rmtree(base, ignore_errors=True)


def _refuse_another_library(environment: str) -> None:
    """Stop if the library that is imported is not the one of this environment."""
    import rankeval

    offers = [
        (f"the entry point {name} of {group}", point.dist.locate_file(""))
        for group, name in ENTRY_POINTS.items()
        for point in metadata.entry_points(group=group, name=name)
    ]
    for what, home in [("rankeval", rankeval.__file__), *offers]:
        if not Path(home).resolve().is_relative_to(Path(environment).resolve()):
            raise SystemExit(f"{what} is of {home}, not of {environment}")


class _Worker:
    """The recipes, the names of this commit, and the file for the results."""

    def __init__(self, job: dict[str, Any], base: Path) -> None:
        from oracle.calls import load_recipes
        from oracle.masks import Masks
        from oracle.names import Names

        self.job, self.base = job, base
        self.recipes = load_recipes()
        self.names = Names.read(Path(job["names"])) if job.get("names") else Names.read()
        folders = {
            job["environment"]: "<environment>",
            job["oracle"]: "<oracle>",
            str(base): "<folder>",
        }
        renamed = {new: old for old, new in self.names.words.items()}
        self.masks = Masks(
            {str(Path(folder).resolve()): word for folder, word in folders.items()}, renamed=renamed
        )
        self.masks.folders |= folders
        self.settings = dict(os.environ)
        self.database = Path(job["database"])

    def run(self) -> None:
        """Make the calls, one after another."""
        from oracle.calls import recipe_of

        gc.set_threshold(20_000)
        with Path(self.job["out"]).open("a", encoding="utf-8") as out:
            for number in self.job["calls"]:
                chosen = recipe_of(self.job["seed"], number, self.recipes)
                if self.job["rooms"] and chosen.room not in self.job["rooms"]:
                    continue
                out.write(json.dumps({"at": number, "recipe": chosen.name}) + "\n")
                out.flush()
                faulthandler.dump_traceback_later(self.job["limit"], exit=True, file=sys.__stderr__)
                line = self.made(number, chosen)
                if number % 1000 == 0:  # objects of libraries, which are looked through no more
                    gc.collect()
                    gc.freeze()
                faulthandler.cancel_dump_traceback_later()
                out.write(json.dumps(line) + "\n")
                out.flush()

    def made(self, number: int, chosen: Any) -> dict[str, Any]:
        """Make one call; return its digest and cost, with the whole tree if the job asks for it."""
        from oracle.digest import digest

        began = _cpu_seconds()
        tree, called, classes = self.tree(number, chosen)
        cost = round(_cpu_seconds() - began, 4)
        line = {"call": number, "recipe": chosen.name, "digest": digest(tree), "cpu": cost}
        line |= {"called": sorted(set(called)), "classes": sorted(classes)}
        return line | ({"tree": tree} if self.job["full"] else {})

    def tree(self, number: int, chosen: Any) -> tuple[Any, list[str], set[str]]:
        """Make one call; return its tree, the names that were called and the classes met."""
        from oracle.calls import Call, performed
        from oracle.digest import Describer
        from oracle.drawing import Draw
        from oracle.written import folder_tree

        folder = self.base / f"call-{number}"
        folder.mkdir()
        os.chdir(folder)
        self.masks.hashes, self.masks.timed = chosen.hashes, chosen.timed
        self.masks.folders = {str(folder): "<folder>", **self.masks.folders}
        describer = Describer(self.masks, self.names)
        call = Call(Draw(self.job["seed"], number), self.names, describer)
        call.empty_database = self.database
        self.forget(number)
        out, err = io.StringIO(), io.StringIO()
        try:
            with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(out):
                warnings.simplefilter("always")
                with contextlib.redirect_stderr(err):
                    performed(chosen, call)
            files = folder_tree(folder, describer)
        finally:
            os.chdir(self.base)
            del self.masks.folders[str(folder)]
            shutil.rmtree(folder, ignore_errors=True)
            self.forget(number)
        texts = sorted(
            {(each.category.__name__, self.masks.text(str(each.message))) for each in warned}
        )
        tree = {"steps": call.steps, "warnings": [list(text) for text in texts], "files": files}
        tree["printed"] = {
            "out": self.masks.text(out.getvalue()),
            "err": _kept_lines(self.masks.text(err.getvalue())),
        }
        return tree, call.called, describer.classes

    def forget(self, number: int) -> None:
        """Put back what a call may have changed: variables, seeds, what libraries remember."""
        import numpy as np

        os.environ.clear()
        os.environ.update(self.settings)
        random.seed(number)
        np.random.seed(number % 2**32)  # noqa: NPY002 - what recipes and estimators may read
        for name in ("rankeval.contamination.forget", "rankeval.testing.CHECKS.clear"):
            with contextlib.suppress(Exception):
                self.names.find(name)()
        if "mlflow" in sys.modules:
            from oracle.stores import leave_stores

            leave_stores()
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")


def _kept_lines(text: str) -> list[str]:
    """Return what is printed to stderr without the progress of other libraries."""
    return [
        line
        for line in text.splitlines()
        if line.strip() and "it/s" not in line and "INFO" not in line
    ]


def _cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    time.tzset()
    main(sys.argv[1])
