"""Programs that run in processes of their own, and need not wait for the large libraries to be imported.

Each process of the test run starts one helper, which imports libraries of others, none of ours and not MLflow. A
program is a fork of it: with its own environment, folder and search path, and with everything of ours still to import.
In the full circle, and without fork, each program is a new interpreter, as a user has it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import types
from pathlib import Path

from circles import CIRCLE

NEW = CIRCLE == "full" or not sys.platform.startswith("linux")
# What MLflow, scikit-learn's searches and reports import first.
LIBRARIES = """
numpy pandas scipy.stats scipy.optimize scipy.sparse.linalg pyarrow.parquet yaml joblib cloudpickle typer rich.console
sklearn.ensemble sklearn.linear_model sklearn.model_selection sklearn.pipeline sklearn.preprocessing sklearn.datasets
sklearn.metrics lightgbm matplotlib.pyplot matplotlib.backends.backend_agg jinja2 requests sqlalchemy.orm
sqlalchemy.dialects.sqlite alembic.command pydantic fastapi opentelemetry.sdk.trace
polars pyspark.sql importlib_metadata
"""
_helper: list[socket.socket] = []
_used: list[float] = []
_lock = threading.Lock()


def cpu_seconds() -> float:
    """Return what the forked programs of this process have used."""
    return sum(_used)


def run(
    program: str | Path,
    *arguments: str,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """Run a file, or the code in a string, as Python does with `-c`; return its exit code and what it printed."""
    environment, folder = dict(os.environ if env is None else env), str(cwd or Path.cwd())
    if NEW:
        command = [sys.executable, *([str(program)] if isinstance(program, Path) else ["-c", program]), *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, timeout=timeout, capture_output=True, text=True, check=False
        )
    path = str(program) if isinstance(program, Path) else None
    asked = {"path": path, "code": path or program, "argv": [path or "-c", *arguments], "cwd": folder}
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        reading, writing = os.pipe()
        with os.fdopen(reading) as status:
            try:
                message = json.dumps({**asked, "env": environment}).encode()
                with _lock:
                    socket.send_fds(_connected(), [message], [out.fileno(), err.fileno(), writing])
            finally:
                os.close(writing)
            pid = int(status.readline())
            with selectors.DefaultSelector() as ended:  # `select` takes no descriptor above 1,023
                ended.register(status, selectors.EVENT_READ)
                in_time = ended.select(timeout)
            if not in_time:
                os.killpg(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(asked["argv"], timeout)
            code, seconds = status.readline().split()
            _used.append(float(seconds))
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(asked["argv"], int(code), out.read(), err.read())


def _connected() -> socket.socket:
    """Start the helper of this process, once."""
    if not _helper:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            subprocess.Popen(  # it ends with this process, which then closes the socket
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        _helper.append(ours)
        atexit.register(ours.close)
    return _helper[0]


def _serve(requests: socket.socket) -> dict[str, object]:
    """Fork for every request; return what is asked in the fork that is to run it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, *_ = socket.recv_fds(requests, 1 << 20, 3)
        if not message:
            os._exit(0)
        if os.fork():
            for each in descriptors:
                os.close(each)
            continue
        requests.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        out, err, status = descriptors
        if pid := os.fork():
            os.write(status, f"{pid}\n".encode())
            _, state, used = os.wait4(pid, 0)
            ended = f"{os.waitstatus_to_exitcode(state)} {used.ru_utime + used.ru_stime}\n"
            os.write(status, ended.encode())
            os._exit(0)
        os.setsid()
        os.dup2(out, 1)
        os.dup2(err, 2)
        for each in descriptors:
            os.close(each)
        return json.loads(message)


def _prepared(asked: dict, search: list[str]) -> tuple[types.CodeType, dict]:
    """Set what a new interpreter has from its command; return the program and the names of its module."""
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    own = str(Path(asked["path"]).resolve().parent) if asked["path"] else ""
    sys.path[:] = [own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *search]
    sys.argv[:] = asked["argv"]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    if asked["path"]:
        module.__file__ = asked["path"]
        return compile(Path(asked["path"]).read_text("utf-8"), asked["path"], "exec"), vars(module)
    return compile(asked["code"], "<string>", "exec"), vars(module)


if __name__ == "__main__":
    for library in LIBRARIES.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    # A fork that ends looks for garbage. Among the objects of the libraries that takes half a second, for nothing.
    gc.collect()
    gc.freeze()
    # The program is the last thing that this process does, so that it ends as a new interpreter does.
    exec(*_prepared(_serve(socket.socket(fileno=int(sys.argv[1]))), sys.path[1:]))  # noqa: S102 - it is what this module is for
