"""Answer every error of the command line in one line, and exit as a shell expects.

Typer answers Ctrl-C (exit 130, without a message), a closed pipe and the end of a file (exit 1)
itself. Exit 1 means here that a gate refused, so `OwnAnswers` hands these errors to `caught`
instead.

A refusal says in commands what to do about registered test content; the library says it in Python.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from typer import Typer
from typer.core import TyperGroup

from rankeval import errors
from rankeval._secrets import masked
from rankeval.cli.options import in_options, literal
from rankeval.cli.output import tell
from rankeval.errors import GuardRefusal

_LONGEST = 2000  # characters of a message: an error may list ten thousand columns
_HINT = "(RANKEVAL_TRACEBACK=1 shows where)"


def as_commands(refusal: GuardRefusal) -> str:
    """Return the message of a refusal with the commands that go on from there."""
    if refusal.project is None or refusal.collection is None:
        return str(refusal)
    status = command("status", refusal.project, ledger=refusal.ledger)
    commands = steps(refusal.project, refusal.collection, refusal.ledger)
    return (
        f"{refusal.found} To go on without these queries, take them out of the files: {status} "
        f"--format json, with the files as --qrels or --data, lists them all. {commands}"
    )


def steps(project: str, collection: str, ledger: str | None) -> str:
    """Return the commands for refused data: to score final systems, release queries, give it up."""
    freeze, exempt, retire = (
        command(name, project, collection, ledger=ledger) for name in ("freeze", "exempt", "retire")
    )
    opening = command("open", project, ledger=ledger)
    return (
        f"To score final systems, once: {freeze} NAME=PATH ..., then {opening} PLAN_ID, both "
        "with the files that it was registered from; rankings opened that way may be evaluated "
        f"again freely. To release some queries for a good reason, on record: {exempt} REASON "
        "--query ID; for all that are in some files, those files instead of --query. To give the "
        f"collection up as a test and fit on it, for good: {retire} REASON"
    )


def command(name: str, *arguments: str, ledger: str | None) -> str:
    """Return a command of the guard as a shell takes it.

    Examples
    --------
    >>> command("retire", "web shop", "r5", ledger=None)
    "rankeval guard retire 'web shop' r5"
    """
    options = [] if ledger is None else ["--ledger", masked(ledger)]
    return shlex.join(["rankeval", "guard", name, *arguments, *options])


class _Escaped(Exception):
    """Carries an error through Typer, which would answer it itself."""


class OwnAnswers(TyperGroup):
    """Commands that leave interrupts and closed pipes to `caught`, with errors that name options."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command whose help prints as it is written."""
        command = super().get_command(ctx, cmd_name)
        return command and literal(command)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help; that of a group within a group is literal already."""
        shown = literal(self) if ctx.parent is None else self
        TyperGroup.format_help(shown, ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, EOFError, OSError) as error:
            raise _Escaped from error
        except errors.RankevalError as error:
            raise in_options(error, self.get_command(ctx, str(ctx.invoked_subcommand))) from error


def command_group(words: str) -> Typer:
    """Return a group of commands, with the words of its help."""
    return Typer(cls=OwnAnswers, no_args_is_help=True, help=words)


def caught(app: Callable[[], object]) -> NoReturn:
    """Run a program and exit: 0 done, 1 refused, 2 wrong use or input; a signal ends the process."""
    if sys.stdout is None:
        _fail(errors.InvalidInput("the standard output is closed: open it to get the result"), 2)
    try:
        app()
        code: Any = 0
    except SystemExit as stop:
        code = stop.code
    except _Escaped as escaped:
        code = _answer(escaped.__cause__ or escaped)
    except BaseException as error:  # noqa: BLE001 - no traceback may reach the user
        code = _answer(error)
    if code == 130:
        _answer(KeyboardInterrupt())
    try:
        sys.stdout.flush()
    except OSError as error:
        _answer(error)
    sys.exit(code)


def _answer(error: BaseException) -> NoReturn:
    if isinstance(error, KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C would show a traceback
        tell("interrupted", to_stderr=True)
        _die("SIGINT", 130)
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        _die("SIGPIPE", 141)
    _fail(error, 1 if isinstance(error, (errors.Refusal, errors.GuardRefusalError)) else 2)


def _fail(error: BaseException, code: int) -> NoReturn:
    if os.environ.get("RANKEVAL_TRACEBACK"):
        raise error
    # One line for programs, which search it; a terminal gets it wrapped.
    line = f"{'refused' if code == 1 else 'error'}: {_one_line(error)}"
    tell(line, to_stderr=True, fill=sys.stderr.isatty())
    _abandon_output()
    sys.exit(code)


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    text = as_commands(error) if isinstance(error, errors.GuardRefusal) else str(error)
    text = " ".join(text.split())
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]} ..."
    if isinstance(error, (errors.RankevalError, errors.Refusal)):
        return text or type(error).__name__
    # A foreign error: its class says more than its message, and its notes name the file.
    parts = [type(error).__name__, text, *getattr(error, "__notes__", ())]
    return f"{': '.join(filter(None, parts))} {_HINT}"


def _die(name: str, code: int) -> NoReturn:
    # By the signal itself, so that a loop of the shell around this program ends too.
    _abandon_output()
    if os.name == "posix":
        number = getattr(signal, name)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(code)


def _abandon_output() -> None:
    # Python would report at exit what cannot be printed.
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - a file of the system
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
