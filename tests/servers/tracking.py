"""MLflow tracking servers on loopback: one that a whole test run shares, and others that a test may kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rankeval_mlflow.delivery.spool import held

# A server starts in about 13 s, on a machine with other work in a minute.
_PATIENCE = 180.0


def free_port() -> int:
    """Return a port on loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """An MLflow tracking server on loopback that can be killed and brought back.

    Parameters
    ----------
    folder : Path
        The folder of its artifacts and its log.
    database : str
        The address of its store.
    """

    folder: Path
    database: str
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        """Return the address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--backend-store-uri", self.database, "--workers", "1"]
        command += ["--artifacts-destination", str(self.folder / "artifacts")]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.uri}/health", timeout=2):  # noqa: S310
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.kill()
        raise AssertionError((self.folder / "server.log").read_text())

    def kill(self) -> None:
        """End the server and its workers, which are in a process group of their own."""
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None


@contextlib.contextmanager
def running(folder: Path, database: str) -> Iterator[Server]:
    """Start a server of one's own, and end it."""
    server = Server(folder, database)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextlib.contextmanager
def shared(root: Path, empty_database: Path) -> Iterator[Server]:
    """Use the server of the test run: the first process that asks starts it, the last one ends it.

    Parameters
    ----------
    root : Path
        A folder that the processes of one test run have in common.
    empty_database : Path
        A SQLite file with MLflow's tables.
    """
    server = _joined(root, empty_database)
    try:
        yield server
    finally:
        _left(root, server)


def _joined(root: Path, empty_database: Path) -> Server:
    """Count this process among the users; start the server if it is the first."""
    note = root / "mlflow-server.json"
    with held(root / "mlflow-server.lock", 2 * _PATIENCE):
        known = json.loads(note.read_text()) if note.exists() else None
        if known is None:
            folder = root / f"mlflow-server-{os.getpid()}"
            folder.mkdir(exist_ok=True)
            (folder / "mlflow.db").write_bytes(empty_database.read_bytes())
            server = Server(folder, f"sqlite:///{folder}/mlflow.db")
            server.start()
            assert server.process is not None
            known = {"folder": str(folder), "port": server.port, "pid": server.process.pid, "users": 0}
        else:
            server = Server(Path(known["folder"]), f"sqlite:///{known['folder']}/mlflow.db", known["port"])
        note.write_text(json.dumps({**known, "users": known["users"] + 1}))
    return server


def _left(root: Path, server: Server) -> None:
    """Count this process out; end the server by its process id if it was the last."""
    note = root / "mlflow-server.json"
    with held(root / "mlflow-server.lock", 2 * _PATIENCE):
        known = json.loads(note.read_text())
        if known["users"] > 1:
            note.write_text(json.dumps({**known, "users": known["users"] - 1}))
            if server.process is not None:
                server.process.returncode = 0  # another process ends it
            return
        note.unlink()
        if server.process is not None:
            server.kill()
        else:
            os.killpg(known["pid"], signal.SIGKILL)
