"""Help prints for every command, as it is written: nothing in it is markup, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from tables import each_row
from typer.core import TyperOption

from rankeval import cli, tracking
from rankeval.cli.exits import command_group
from rankeval.cli.options import OPTIONS, ending_with, options

HOSTILE = [
    "METRIC=COLUMN[/COLUMN]",
    "[/] closes all",
    "[bold]not bold[/bold]",
    "[red]no end, [link=http://x]",
    "a path\\",
    r"C:\[dir] \\[b]",
    "[@click=app.bell]x[/]",
    "list[str] | dict[str, list[int]]",
    "[[x]] [ ] [/x",
    "[#1] of [2]",
]


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk the tree of commands, into those that installed hosts bring."""
    yield path, group
    if hosted := len(path) == 1 and path[0] in tracking.host_names():
        group = typer.main.get_command(tracking.host(path[0]).commands())
        assert hosted
    context = typer.Context(group)
    for name in group.list_commands(context) if hasattr(group, "list_commands") else ():
        yield from commands(group.get_command(context, name), (*path, name))


def squeezed(text: str) -> str:
    """Return a text without the frames and the line breaks of a help page."""
    return "".join(text.translate(dict.fromkeys(map(ord, "│╭╮╰╯─"), " ")).split())


def test_help_of_every_command_prints(rankeval, monkeypatch):
    """Every command of rankeval and of its hosts says what each of its options means, and exits with 0."""
    monkeypatch.setenv("COLUMNS", "500")  # no word of a help text is cut
    tree = dict(commands(typer.main.get_command(cli.app)))
    assert {("online", "ab"), ("guard", "gate"), ("judging", "pool"), ("mlflow", "promote")} <= tree.keys()
    for path, command in tree.items():
        code, out, err = rankeval(*path, "--help")
        assert (code, err) == (0, ""), path
        for name in [one.name for one in command.params if path and isinstance(one, TyperOption)]:
            assert name not in OPTIONS or squeezed(OPTIONS[name][2]) in squeezed(out), (path, name)


@each_row("words", HOSTILE)
def test_help_is_no_markup(words, rankeval, monkeypatch):
    """A command, an option, a group, a list at the end and a host may have any words."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setitem(OPTIONS, "words", (str, "x", words))
    monkeypatch.setattr(cli.hosts, "host_names", lambda: ["diary"])
    monkeypatch.setattr(cli.hosts, "shown_host", lambda _: tracking.Host(words, commands=lambda: None))
    group = command_group(words)
    listing = ending_with(lambda: [words])
    for name in ("one", "two"):
        group.command(name, cls=listing, help=f"{words}\n\n{words}")(options("words")(lambda *, words: words))
    monkeypatch.setattr(cli.app, "registered_groups", list(cli.app.registered_groups))
    cli.app.add_typer(group, name="hostile")
    for path, times in (((), 2), (("hostile",), 3), (("hostile", "one"), 4)):
        code, out, err = rankeval(*path, "--help")
        assert (code, err) == (0, "")
        assert squeezed(out).count(squeezed(words)) >= times, (path, out)


def test_help_shows_no_escape_sequence(rankeval, monkeypatch):
    """A host that cannot be loaded may have an error of any text."""
    monkeypatch.setattr(cli.hosts, "host_names", lambda: ["diary"])
    monkeypatch.setattr(cli.hosts, "shown_host", lambda _: tracking.Host("a\x1b]0;b\x07", commands=lambda: None))
    code, out, _ = rankeval("--help")
    assert (code, "\x1b" in out, "a\\x1b]0;b\\x07" in out) == (0, False, True)


@pytest.mark.parametrize("switch", ["0", "1"])
def test_help_without_rich_has_no_backslashes(switch, rankeval, monkeypatch):
    """Typer prints plain help where Rich is switched off: then nothing is escaped."""
    monkeypatch.setattr(typer.core, "HAS_RICH", switch == "1")
    code, out, _ = rankeval("online", "ab", "--help")
    assert (code, "COLUMN[/COLUMN]" in squeezed(out)) == (0, True)
