"""Whatever happens, the command line says one line, names the file, and ends as a shell expects."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tables import each_row

from rankeval import cli
from rankeval._visible import visible

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"
RUN = "q1 Q0 a 1 9 t\nq1 Q0 b 2 8 t\nq2 Q0 a 1 8 t\n"
PROGRAM = [sys.executable, "-c", "from rankeval.cli import main; main()"]


@pytest.fixture(autouse=True)
def files() -> None:
    """Put a small collection into the working directory."""
    Path("qrels").write_text(QRELS)
    Path("run").write_text(RUN)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "MemoryError"),
        (OverflowError("too large\nby far"), "OverflowError: too large by far"),
        (KeyError("x"), "KeyError: 'x'"),
        (EOFError("ended"), "EOFError: ended"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_what_nobody_thought_of_is_one_line_with_the_file(rankeval, monkeypatch, error, said):
    from rankeval.io import formats

    def broken(*_):
        raise error

    monkeypatch.setitem(formats.FORMATS, "trec", replace(formats.FORMATS["trec"], read=broken))
    hint = "(RANKEVAL_TRACEBACK=1 shows where)"
    assert rankeval("evaluate", "qrels", "run") == (2, "", f"error: {said}: while reading qrels {hint}\n")
    monkeypatch.setenv("RANKEVAL_TRACEBACK", "1")
    monkeypatch.setattr(sys, "argv", ["rankeval", "evaluate", "qrels", "run"])
    with pytest.raises(type(error)):
        cli.main()


NESTED = "[" * 100_000
BROKEN = {
    "r.csv, CR": ("r.csv", b"qid,docid,score\rq1,a,1\r"),
    "r.tsv, CR": ("r.tsv", b"qid\tdocid\tscore\rq1\ta\t1\r"),
    "r.jsonl, deep": ("r.jsonl", b'{"qid":"q1","docid":"a","score":1}\n{"a":' + NESTED.encode() + b"\n"),
    "r.jsonl, half a character": ("r.jsonl", b'{"qid":"q1","docid":"\\udc80","score":1}\n'),
    "run in UTF-16": ("r.run", RUN.encode("utf-16")),
    "a tag in Latin-1": ("r.run", RUN.replace("t\n", "\xe4\n").encode("latin-1")),
    "half a Parquet file": ("r.parquet", b"PAR1" + b"x" * 100 + b"PAR1"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_named_in_one_line(rankeval, case):
    name, content = BROKEN[case]
    Path(name).write_bytes(content)
    code, out, err = rankeval("evaluate", "qrels", name)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {name}")
    assert "RANKEVAL_TRACEBACK" not in err  # it has a sentence of its own


CONFIGS = {
    "not UTF-8": b"name: \xe4\n",
    "deep": b"name: " + NESTED.encode(),
    "deep blocks": b"".join(b" " * level + b"a:\n" for level in range(3000)),
    "NUL": b"name: a\0\n",
    "not hashable": b"? [a, b]\n: c\n",
    "an alias of itself": b"name: &a [*a]\n",
    "a large number": b"seed: " + b"9" * 5000,
    "a date of no calendar": b"name: 2001-99-99\n",
}


@pytest.mark.parametrize("case", CONFIGS)
def test_broken_configs_are_named_in_one_line(rankeval, case):
    Path("x.yaml").write_bytes(CONFIGS[case])
    code, out, err = rankeval("run", "x.yaml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: x.yaml")
    assert "RANKEVAL_TRACEBACK" not in err


def test_a_file_of_zscores_in_another_encoding_is_named(rankeval):
    Path("z").write_bytes(b"q1 map 0.5 0.1\nq\xe4 map 0.5 0.1\n")
    code, _, err = rankeval("evaluate", "qrels", "run", "--format", "trec", "-Z", "z")
    assert (code, err.startswith("error: z, line 2: expected topic")) == (2, True)


def test_limits_are_raised_by_an_option(rankeval):
    """And the message says so in the words of the shell."""
    Path("long").write_text(f"{RUN}#{'x' * (1 << 20)}\n")
    code, _, err = rankeval("evaluate", "qrels", "long")
    assert (code, "raise it: --limit line=..." in err) == (2, True)
    assert rankeval("evaluate", "qrels", "long", "--limit", "line=2000000")[0] == 0
    assert rankeval("compare", "qrels", "long", "run", "--limit", "line=2000000")[0] == 0
    code, _, err = rankeval("evaluate", "qrels", "run", "--limit", "lines=2000000")
    assert (code, err) == (2, "error: unknown limit 'lines'; did you mean 'line'?\n")
    code, _, err = rankeval("evaluate", "qrels", "run", "--limit", "line=x")
    assert (code, "whole number" in err) == (2, True)


HOSTILE = "\x1b]0;owned\x07\x9b2J\u202eevil"


def test_nothing_steers_the_terminal(rankeval):
    """Ids, tags, names of files and messages are shown escaped; the output of trec_eval keeps them."""
    Path("qrels").write_text(f"{HOSTILE} 0 a 1\nq2 0 a 1\n")
    Path(f"run{HOSTILE}").write_text(f"{HOSTILE} Q0 a 1 9 {HOSTILE}\nq2 Q0 a 1 9 t\n")
    name = f"run{HOSTILE}"
    shown = "\\x1b]0;owned\\x07\\x9b2J\\u202eevil"
    code, out, err = rankeval("evaluate", "qrels", name, "-q", "-m", "RR")
    assert (code, shown in out) == (0, True)
    for text in (out, err):
        assert visible(text, keep="\n") == text
    code, out, err = rankeval("compare", "qrels", name, name, "-m", "RR")
    assert visible(out, keep="\n") == out
    code, _, err = rankeval("evaluate", "qrels", f"none{HOSTILE}")
    assert (code, visible(err, keep="\n")) == (2, err)
    Path("bad").write_text(f"{HOSTILE} 0 a {HOSTILE}\n")
    code, _, err = rankeval("evaluate", "bad", name)
    assert (code, visible(err, keep="\n")) == (2, err)
    code, out, _ = rankeval("evaluate", "qrels", name, "-q", "-m", "map", "--format", "csv")
    assert (code, visible(out, keep="\n"), shown in out) == (0, out, True)
    code, out, _ = rankeval("evaluate", "qrels", name, "-q", "-m", "map", "--format", "trec")
    assert (code, HOSTILE in out) == (0, True)


@each_row("name", ["=cmd", "+1", "-1", "@SUM(A1)"])
def test_no_cell_of_csv_is_a_formula(rankeval, name):
    """A text gets an apostrophe, as OWASP advises; a negative number stays."""
    Path("qrels").write_text(f"{name} 0 a 0\n{name} 0 b 1\n")
    Path("run").write_text(f"{name} Q0 a 1 9 t\n{name} Q0 b 2 8 t\n")
    code, out, _ = rankeval("evaluate", "qrels", "run", "-q", "-m", "gm_AP", "--format", "csv")
    assert (code, out.splitlines()[1]) == (0, f"run,'{name},{math.log(0.5)}")


def test_a_terminal_without_the_letters_shows_their_codes():
    done = subprocess.run(
        [*PROGRAM, "evaluate", "none-\xe4"],
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 2
    Path("r\xe4").write_text(RUN)
    done = subprocess.run(
        [*PROGRAM, "evaluate", "qrels", "r\xe4"],
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"},
    )
    assert (done.returncode, b"r\\xe4" in done.stdout, done.stderr[:6]) == (0, True, b"next: ")


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_an_interrupt_is_said_and_stops_the_shell():
    """The process dies by SIGINT, which a shell shows as 130, and its loops end."""
    os.mkfifo("pipe")
    process = subprocess.Popen([*PROGRAM, "evaluate", "qrels", "pipe"], stderr=subprocess.PIPE, text=True)
    writer = os.open("pipe", os.O_WRONLY)  # returns when the program has opened the other end
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    os.close(writer)
    assert (process.returncode, err) == (-signal.SIGINT, "interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a shell")
@pytest.mark.parametrize(
    ("redirect", "code", "said"),
    [
        (">&-", {2}, "error: the standard output is closed: open it to get the result\n"),
        ("> /dev/full", {2}, "No space left on device"),
        ("| true; exit ${PIPESTATUS[0]}", {141, 1}, ""),
        ("| head -n 1 > /dev/null; exit ${PIPESTATUS[0]}", {0, 141, 1}, ""),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["measures", "--format", "json"],
        pytest.param(["evaluate", "qrels", "run"], marks=pytest.mark.rest),
        pytest.param(["--help"], marks=pytest.mark.rest),
    ],
)
def test_lost_output_is_no_success(redirect, code, said, command):
    """Without a traceback: closed, full, or read by nobody any more."""
    done = subprocess.run(
        ["bash", "-c", f'"$@" {redirect}', "bash", *PROGRAM, *command],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode in code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
