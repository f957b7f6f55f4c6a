"""Users who share a server and a machine: nothing is lost, each sends what is his, and nobody sees a traceback.

The users are real: processes that give up the rights of root. The full disk and the read-only one are file systems of
1 MB. So these tests need root and the right to mount; elsewhere they are left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest

from rankeval_mlflow.delivery.payload import roles_of

pytestmark = [pytest.mark.users, pytest.mark.server]

ALICE, BOB = 65534, 65533  # the user "nobody", and one without a name
NOBODY_LISTENS = "http://127.0.0.1:9"
# Python itself may lie where no other user may read. So one process imports everything, and forks the users.
USERS = """
import json, os, sys, tempfile, traceback
import rankeval as rk
import rankeval_mlflow as rkm
from rankeval.cli import main

def log(name):
    ev = rk.evaluate([1, 0, 2, 0], [2, 1, 1, 2], qid=[1, 1, 2, 2], name=name)
    try:
        print(rkm.log(ev, report=False).run_id)
    except rk.errors.TrackingError as error:
        print(error)

def command(*arguments):
    sys.argv = ["rankeval", "mlflow", *arguments]
    main()

def become(uid, umask, settings):
    os.environ.update(settings)
    tempfile.tempdir = None
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    os.umask(umask)

def imported():
    log("imports")
    os.environ["MLFLOW_TRACKING_URI"] = "http://127.0.0.1:9"
    log("imports")
    for arguments in (["list", "--waiting", "--format", "json"], ["resend"]):
        try:
            command(*arguments)
        except SystemExit:
            pass

imported()
print("ready", flush=True)
for line in sys.stdin:
    name, arguments, *user = json.loads(line)
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                become(*user)
                globals()[name](*arguments)
            except SystemExit:
                pass
            except BaseException:  # the traceback is what the test looks for
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        os.waitpid(child, 0)
        said.seek(0)
        print(json.dumps(said.read()), flush=True)
"""


@dataclass
class Host:
    """A machine with a folder that all users may enter, and with a store that they share."""

    users: subprocess.Popen[str]
    folder: Path
    uri: str
    experiment: str

    @property
    def spool(self) -> Path:
        """Return the spool that all of them have set."""
        return self.folder / "spool"

    def log(self, uid: int, name: str, *, umask: int = 0o22, uri: str | None = None, spool: Path | None = None) -> str:
        """Log an evaluation as a user; return what was printed and warned of."""
        return self._asked("log", [name], uid, umask, uri or self.uri, spool or self.spool)

    def command(self, uid: int, *arguments: str) -> str:
        """Run a command as a user; return what it printed."""
        return self._asked("command", arguments, uid, 0o22, NOBODY_LISTENS, self.spool)

    def _asked(self, name: str, arguments: Sequence[str], uid: int, umask: int, uri: str, spool: Path) -> str:
        settings = {
            "HOME": str(self.folder / str(uid)),
            "TMPDIR": str(self.folder / "tmp"),
            "MLFLOW_TRACKING_URI": uri,
            "MLFLOW_EXPERIMENT_NAME": self.experiment,
            "RANKEVAL_SPOOL": str(spool),
        }
        assert self.users.stdin is not None
        assert self.users.stdout is not None
        self.users.stdin.write(json.dumps([name, arguments, uid, umask, settings]) + "\n")
        self.users.stdin.flush()
        said = str(json.loads(self.users.stdout.readline()))
        assert "Traceback" not in said, said
        return " ".join(said.split())

    def waiting(self, uid: int) -> list[str]:
        """Return the names of the pending uploads that a user sees."""
        said = self.command(uid, "list", "--waiting", "--format", "json")
        return sorted(upload["name"] for upload in json.loads(said[said.index("[") : said.rindex("]") + 1]))

    def whole(self) -> list[str]:
        """Return the names of the runs, which are all whole."""
        client = mlflow.MlflowClient(self.uri)
        found = client.search_runs([client.get_experiment_by_name(self.experiment).experiment_id])
        assert all(run.info.status == "FINISHED" and roles_of(run.data.tags) == ("dev",) for run in found)
        return sorted(run.info.run_name for run in found)


@pytest.fixture(scope="module")
def users(server, tmp_path_factory) -> Iterator[subprocess.Popen[str]]:
    """Start the process that becomes one user after the other."""
    folder = tmp_path_factory.mktemp("users")
    settings = {**os.environ, "RANKEVAL_SPOOL": str(folder), "MLFLOW_TRACKING_URI": server.uri}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", USERS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=settings, cwd=folder, text=True
    ) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "ready\n":
            assert process.poll() is None
        yield process
        process.kill()


@pytest.fixture
def host(users, server, request) -> Iterator[Host]:
    """Return a machine of the test's own."""
    folder = Path(tempfile.mkdtemp(prefix="rankeval-users-"))
    folder.chmod(0o755)
    for name in ("tmp", str(ALICE), str(BOB)):
        (folder / name).mkdir()
        (folder / name).chmod(0o1777)
    yield Host(users, folder, server.uri, f"{request.node.name} {folder.name}")
    with contextlib.suppress(subprocess.CalledProcessError):
        subprocess.run(["umount", str(folder / "spool")], check=True, stderr=subprocess.DEVNULL)
    shutil.rmtree(folder)


@pytest.fixture
def small_disk(host: Host) -> Path:
    """Mount a disk of 1 MB as the spool that all users may write."""
    host.spool.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=1777", "tmpfs", str(host.spool)], check=True)
    return host.spool


def test_a_spool_of_another_user_is_named_and_what_waits_is_among_the_temporary_files(host):
    host.spool.mkdir(mode=0o700)
    shutil.chown(host.spool, ALICE)
    assert "resend" in host.log(ALICE, "ridge", uri=NOBODY_LISTENS)
    up = host.log(BOB, "up")
    down = host.log(BOB, "down", uri=NOBODY_LISTENS)
    spare = host.folder / "tmp" / f"rankeval-{BOB}" / "spool"
    for said in (up, down):
        assert f"the spool {host.spool} cannot be written (Permission denied; it belongs to nobody)" in said
        assert f"is kept in {spare}" in said
    assert host.whole() == ["up"]
    assert host.waiting(BOB) == ["down"]
    assert host.waiting(ALICE) == ["ridge"]
    for uid in (BOB, ALICE):
        assert "sent to run" in host.command(uid, "resend", "--uri", host.uri)
        assert host.waiting(uid) == []
    assert host.whole() == ["down", "ridge", "up"]


def test_a_spool_below_the_folder_of_a_user_without_a_name_is_that_users(host):
    home = host.spool
    home.mkdir(mode=0o700)
    shutil.chown(home, BOB)
    said = host.log(ALICE, "ridge", spool=home / "a" / "b")
    assert f"Permission denied; {home} belongs to the user {BOB}" in said
    assert host.whole() == ["ridge"]


def test_a_spool_that_all_may_write_keeps_what_is_each_users_own(host):
    """The umask of one lets nobody in, and that of the other lets everybody."""
    host.spool.mkdir()
    host.spool.chmod(0o1777)
    for uid, umask in ((ALICE, 0), (BOB, 0o77)):
        host.log(uid, f"of {uid}", umask=umask, uri=NOBODY_LISTENS)
    assert [path.stat().st_mode & 0o777 for path in host.spool.iterdir()] == [0o700, 0o700]
    for uid in (ALICE, BOB):
        assert host.waiting(uid) == [f"of {uid}"]
        assert "cannot be" not in host.command(uid, "resend", "--uri", host.uri)
    assert host.whole() == sorted(f"of {uid}" for uid in (ALICE, BOB))
    assert [path for path in host.spool.iterdir() if path.suffix != ".lock"] == []


def test_a_full_spool_gives_way_to_the_temporary_files(host, small_disk):
    (small_disk / "dump").write_bytes(bytes(1020 * 1024))
    for name, uri in (("up", None), ("down", NOBODY_LISTENS)):
        assert "cannot be written (No space left on device); until it is sent" in host.log(ALICE, name, uri=uri)
    assert [path.name for path in small_disk.iterdir()] == ["dump"], "no half record is left"
    assert host.waiting(ALICE) == ["down"]
    host.command(ALICE, "resend", "--uri", host.uri)
    assert host.whole() == ["down", "up"]


def test_what_waits_in_a_spool_that_fills_up_is_sent(host, small_disk):
    host.log(ALICE, "ridge", uri=NOBODY_LISTENS)
    with contextlib.suppress(OSError):
        (small_disk / "dump").write_bytes(bytes(1 << 20))
    host.command(ALICE, "resend", "--uri", host.uri)
    assert host.whole() == ["ridge"]
    assert [path.name for path in small_disk.iterdir()] == ["dump"]


def test_what_waits_in_a_read_only_spool_is_kept_until_it_can_be_written(host, small_disk):
    host.log(ALICE, "early", uri=NOBODY_LISTENS)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert "Read-only file system" in host.command(ALICE, "resend", "--uri", host.uri)
    host.log(ALICE, "late", uri=NOBODY_LISTENS)
    assert "until it is sent" in host.log(ALICE, "now")
    assert host.waiting(ALICE) == ["early", "late"]
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    host.command(ALICE, "resend", "--uri", host.uri)
    assert host.waiting(ALICE) == []
    assert host.whole() == ["early", "late", "now"]


def test_a_temporary_folder_that_another_user_took_is_not_used(host):
    """Who owns a folder may put uploads there that its victim would send."""
    taken = host.folder / "tmp" / f"rankeval-{BOB}"
    taken.mkdir()
    taken.chmod(0o777)
    shutil.chown(taken, ALICE)
    host.spool.mkdir(mode=0o700)
    said = host.log(BOB, "ridge")
    assert "cannot be written (Permission denied; it belongs to root), and no temporary folder" in said
    assert list(taken.iterdir()) == []
