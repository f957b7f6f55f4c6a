"""A contest: each contestant in a process of its own, one thread, least CPU seconds and peak memory of its repeats."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

os.environ["RANKEVAL_LEDGER"] = "off"
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whole processes find their modules compiled, as pip leaves them
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "ARROW_NUM_THREADS"), "1"
)


def _cpu() -> float:
    """Return the CPU seconds of this process and of the children it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak() -> float:
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


def take_part(call: Callable[[], object], repeats: int, **facts: float) -> None:
    """Run one contestant in this process; its first call, which loads and compiles, does not count."""
    before, seconds, walls = _peak(), [], []
    for _ in range(repeats + 1):
        cpu, wall = _cpu(), time.perf_counter()
        call()
        seconds.append(_cpu() - cpu)
        walls.append(time.perf_counter() - wall)
    print(json.dumps({"cpu": min(seconds[1:]), "wall": min(walls[1:]), "peak": _peak(), "before": before, **facts}))


def machine() -> str:
    """Return the name of this machine, as a table of speed prints it."""
    try:
        known = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    except OSError:
        known = {}
    facts = {name.strip(): value.strip() for name, value in known.items()}
    kind = " ".join(f"{name} {facts[name]}" for name in ("cpu family", "model") if name in facts)
    return f"{facts.get('model name', platform.machine())} ({kind}), {os.cpu_count()} cores"


def hold(script: str, names: Sequence[str], arguments: Sequence[str], title: str) -> None:
    """Run every contestant and print its seconds, and its ratio to the first one.

    Parameters
    ----------
    script : str
        The benchmark's own file, called again with ``--child NAME``.
    names : sequence of str
        The contestants; the first is the measure of the others.
    arguments : sequence of str
        What else to call the script with.
    title : str
        What is measured.
    """
    print(f"{title}, on {machine()}", flush=True)
    ours = None
    for name in names:
        child = subprocess.run(
            [sys.executable, script, "--child", name, *arguments],
            env={**os.environ, **ONE_THREAD},
            capture_output=True,
            text=True,
            check=False,
        )
        if child.returncode:
            print(f"  {name:26} not run: {(child.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
            continue
        found = json.loads(child.stdout.splitlines()[-1])
        ours = ours or found["cpu"]
        line = f"  {name:26} {found['cpu']:8.3f} s CPU {found['cpu'] / ours:7.2f} x   peak {found['peak']:6.0f} MB"
        if "data" in found:
            used = found["peak"] - found["before"]
            line += f", {used / found['data']:5.2f} x the data ({found['data']:.0f} MB) above what was loaded"
        print(line, flush=True)
