"""Workers of an environment: each makes a part of the calls, and is replaced if it dies.

A worker writes the number of a call before it begins. So if the process ends early, the call that
it was at is recorded as the one that killed it, and the next worker goes on behind it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from oracle.environments import Environment


@dataclass(frozen=True)
class Job:
    """What workers share: the seed, the rooms, the seconds of a call, MLflow's empty database."""

    seed: int
    folder: Path
    database: Path
    rooms: Sequence[str] = ()
    limit: float = 120.0
    names: Path | None = None
    quiet: bool = False
    stop: Event = field(default_factory=Event)


@dataclass
class _Part:
    """The calls of one worker, and what it has written."""

    numbers: list[int]
    out: Path
    results: dict[int, dict[str, Any]] = field(default_factory=dict)


def results_of(
    environment: Environment,
    numbers: Iterable[int],
    job: Job,
    *,
    jobs: int = 1,
    full: bool = False,
    word: str = "run",
) -> dict[int, dict[str, Any]]:
    """Make calls in an environment; return the results by number.

    Parameters
    ----------
    environment : Environment
        The environment of a commit.
    numbers : iterable of int
        The calls.
    job : Job
        What all workers share.
    jobs : int
        Workers at a time.
    full : bool
        Whether the trees are wanted, and not only their digests.
    word : str
        A word for the names of files, which differs for each use.
    """
    wanted = list(numbers)
    base = job.folder / f"{word}-{environment.folder.parent.name}"
    base.mkdir(parents=True, exist_ok=True)
    parts = [_Part(wanted[at::jobs], base / f"part-{at}.jsonl") for at in range(jobs)]
    progress = _Progress(environment.label, len(wanted), quiet=job.quiet)
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for done in [pool.submit(_work, environment, part, job, full, progress) for part in parts]:
            done.result()
    progress.end()
    return dict(
        sorted({number: line for part in parts for number, line in part.results.items()}.items())
    )


def _work(environment: Environment, part: _Part, job: Job, full: bool, progress: _Progress) -> None:
    """Start workers until the calls of a part are made."""
    left, fruitless = list(part.numbers), 0
    while left and not job.stop.is_set():
        code, errors = _run_worker(environment, part, left, job, full, progress)
        at, finished = _read(part)
        if code == 0:
            return
        if at is None or at["at"] in finished:
            fruitless += 1
            if fruitless > 2:
                raise RuntimeError(
                    f"{environment.label}: no worker starts (exit code {code}): {errors[-3000:]}"
                )
        else:
            number = at["at"]
            died = (
                f"exit code {code}"
                if code != 1
                else f"no end after {job.limit:g} s, or exit code 1"
            )
            part.results[number] = {
                "call": number,
                "recipe": at["recipe"],
                "digest": f"died: {died}",
                "cpu": 0.0,
            }
            part.results[number] |= {
                "called": [],
                "classes": [],
                "tree": {"died": died},
                "errors": errors[-2000:],
            }
        behind = max([*part.results], default=-1)
        left = [number for number in left if number > behind]


def _run_worker(
    environment: Environment,
    part: _Part,
    numbers: list[int],
    job: Job,
    full: bool,
    progress: _Progress,
) -> tuple[int, str]:
    content = {
        "seed": job.seed,
        "calls": numbers,
        "out": str(part.out),
        "environment": str(environment.folder),
        "oracle": str(environment.program),
        "database": str(job.database),
        "rooms": list(job.rooms),
        "limit": job.limit,
        "full": full,
        "names": str(job.names) if job.names else None,
    }
    path = part.out.with_suffix(".job.json")
    path.write_text(json.dumps(content))
    log = part.out.with_suffix(".log")
    command = [str(environment.python), "-P", "-m", "oracle.worker", str(path)]
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            env=environment.variables,
            cwd=part.out.parent,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            while process.poll() is None and not job.stop.is_set():
                time.sleep(0.05 if len(numbers) < 1000 else 0.5)
                progress.show(part.out)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    return process.returncode, log.read_text(errors="replace")


def _read(part: _Part) -> tuple[dict[str, Any] | None, dict[int, Any]]:
    """Read what a worker has written; return the call that it was at, and the finished calls."""
    at = None
    if part.out.is_file():
        for line in part.out.read_text("utf-8").splitlines():
            try:
                read = json.loads(line)
            except ValueError:  # the last line of a process that died
                continue
            if "at" in read:
                at = read
            else:
                part.results[read["call"]] = read
    return at, part.results


class _Progress:
    """A line on stderr: calls that were made, and calls per second."""

    def __init__(self, label: str, total: int, *, quiet: bool) -> None:
        self.label, self.total, self.quiet = label, total, quiet
        self.began = self.shown = time.monotonic()
        self.sizes: dict[Path, tuple[int, int]] = {}

    def show(self, out: Path) -> None:
        now = time.monotonic()
        if self.quiet or now - self.shown < 5 or not out.is_file():
            return
        self.shown = now
        with out.open("rb") as file:
            start, lines = self.sizes.get(out, (0, 0))
            file.seek(start)
            self.sizes[out] = (
                start + len(content := file.read()),
                lines + content.count(b'{"call"'),
            )
        done = sum(lines for _, lines in self.sizes.values())
        sys.stderr.write(
            f"\r{self.label}: {done:,} calls, {done / (now - self.began):.0f} in a second "
        )
        sys.stderr.flush()

    def end(self) -> None:
        if not self.quiet:
            seconds = time.monotonic() - self.began
            sys.stderr.write(
                f"\r{self.label}: {self.total:,} calls were drawn, {seconds:.0f} s{' ' * 20}\n"
            )
