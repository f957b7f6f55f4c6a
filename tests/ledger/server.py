"""A PostgreSQL server of our own: a cluster in a temporary folder, on a socket, under a user without rights."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any


def program(name: str) -> str | None:
    """Return the path of one of PostgreSQL's programs; Debian keeps them off the PATH."""
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


class PostgreSQL:
    """A running server.

    Parameters
    ----------
    folder : path
        The folder of its socket.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count()

    def url(self, database: str) -> str:
        """Return the URL of a database."""
        return f"postgresql+psycopg://owner@/{database}?host={self.folder}"

    def run(self, statement: str, database: str = "postgres") -> None:
        """Run a statement outside a transaction."""
        import psycopg

        with psycopg.connect(host=str(self.folder), user="owner", dbname=database, autocommit=True) as connection:
            connection.execute(statement)

    def database(self) -> str:
        """Make an empty database, and return its URL."""
        name = f"db{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return self.url(name)


@contextlib.contextmanager
def running() -> Iterator[PostgreSQL]:
    """Start a server, and end it by its process id."""
    # Not pytest's own folder, which other users cannot enter; a socket's path has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="rankeval-pg-"))
    options = _unprivileged(folder)
    data = folder / "data"
    quiet: dict[str, Any] = {"cwd": folder, "stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, **options}
    try:
        with (folder / "initdb.log").open("w") as log:
            command = [program("initdb"), "-D", data, "-A", "trust", "-U", "owner", "-E", "UTF8", "--no-sync"]
            subprocess.run([*command, "--locale=C"], stdout=log, check=True, **quiet)
        with (folder / "server.log").open("w") as log:
            settings = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off"}
            given = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
            server = subprocess.Popen([program("postgres"), "-D", data, *given], stdout=log, **quiet)
        try:
            started = PostgreSQL(folder)
            _wait(started, server)
            yield started
        finally:
            server.send_signal(signal.SIGINT)  # it ends the connections that are left, and itself
            server.wait(30)
    finally:
        shutil.rmtree(folder)


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Give the folder to a user without rights if we are root, since PostgreSQL does not run as root."""
    if os.geteuid():
        return {}
    users = {user.pw_name: user for user in pwd.getpwall()}
    user = users.get("postgres") or users["nobody"]
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _wait(started: PostgreSQL, server: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            return started.run("SELECT 1")
        except psycopg.OperationalError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((started.folder / "server.log").read_text()) from error
        time.sleep(0.05)
