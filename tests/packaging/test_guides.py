"""The guides are programs: their blocks run in order, fail where they say so, and print what they show."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import forking
import pytest
from circles import SHARED

from rankeval.ledger.discovery import FOLDER

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "examples" / "guides" / "README.md"
GUIDES = [*sorted({*LIST.parent.glob("*.md")} - {LIST}), ROOT / ".github" / "CONTRIBUTING.md"]
# What most readers begin with; the others belong to wider circles, those of a quarter of a CPU minute to the widest.
LONG = (
    "experiment_files.md",
    "mlflow_evaluate.md",
    "mlflow_models.md",
    "models_of_variance.md",
    "promoting.md",
    "results.md",
    "serving.md",
    "tuning.md",
)
FIRST = ("is_it_better.md", "own_data.md", "comparing.md", "guard.md")
WORTH = {
    "own_data.md": "a reader's first hour: five programs, from a table to the report of an experiment",
}
LARGE = ("catboost", "dask", "shap", "skops", "xgboost")  # packages that '.[test]' does not install
MARK, NEEDS = "--- block of line", "python needs "
FAILS = """
try:
{block}
except BaseException as found:
    if type(found).__name__ != {error!r}:
        raise
    print("failed as it should:", type(found).__name__, found)
else:
    raise SystemExit("the block that begins in line {line} is said to fail, and did not")
"""


def fences(text):
    """Yield line, words behind the backticks, and content of each block; then the content of a text right below it."""
    found = list(re.finditer(r"^```(\w.*)\n((?:(?!```).*\n)*)```$", text, re.MULTILINE))
    for match, below in zip(found, [*found, None][1:], strict=True):
        adjacent = below is not None and below[1] == "text" and not text[match.end() : below.start()].strip()
        yield text.count("\n", 0, match.start()) + 2, match[1], match[2], below[2] if adjacent else None


def blocks(text):
    """Yield the line, the name of the error that must come or None, and the code of each block of Python."""
    for line, words, code, _ in fences(text):
        if match := re.fullmatch(r"python(?: fails (\w+))?", words):
            yield line, match[1], code


def program(text, *, collections=False):
    """Return one program of all blocks that run; each begins with its line on stdout.

    Python runs, and if it must fail it is guarded; ```yaml NAME.yaml``` and ```python NAME.py``` are written to that
    file; ```bash runs``` is run by a shell. ```python needs FOLDER``` runs where the shared collections are.
    """
    parts = ["import pathlib, subprocess\n"]
    for line, words, code, _ in fences(text):
        match words.split():
            case ["python"]:
                part = code
            case ["python", "needs", _] if collections:
                part = code
            case ["python", "fails", error]:
                indented = "".join(f"    {row}\n" if row.strip() else "\n" for row in code.splitlines())
                part = FAILS.format(block=indented, error=error, line=line)
            case ["yaml" | "python", name]:
                part = f"pathlib.Path({name!r}).write_text({code!r})\n"
            case ["bash", "runs"]:
                part = f"subprocess.run({code!r}, shell=True, check=True)\n"
            case _:
                continue
        parts.append(f"print({f'{MARK} {line}'!r}, flush=True)\n{part}")
    return "\n".join(parts)


def shown(text):
    """Yield the line of each block that runs and has its output below it, and this output."""
    for line, words, _, output in fences(text):
        if words in ("python", "bash runs") and output is not None:
            yield line, output


def messages(text):
    """Yield the line of each block that fails and has a part of its error below it, and this part."""
    for line, words, _, output in fences(text):
        if words.startswith("python fails ") and output is not None:
            yield line, output


def needed(text):
    """Return the folders of shared collections that a guide reads, and the lines of these blocks with an output."""
    found = [(words.split()[2], line, output) for line, words, _, output in fences(text) if NEEDS in words]
    return {folder for folder, _, _ in found}, [(line, output) for _, line, output in found if output is not None]


def printed(output):
    """Return what each block printed, by its line."""
    parts = re.split(rf"^{re.escape(MARK)} (\d+)\n", output, flags=re.MULTILINE)[1:]
    return {int(line): said for line, said in zip(parts[::2], parts[1::2], strict=True)}


def trimmed(text):
    """Return the lines of a text without blanks at their ends, which nobody sees."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


KEPT_OUT = {"RANKEVAL_LEDGER", "GITHUB_STEP_SUMMARY", "COLUMNS"}
"""A reader has none of these variables."""


def in_a_project(folder):
    """Make a folder the root of a project, as a reader has one; return an environment without ledger or service."""
    (folder / "pyproject.toml").touch()
    return {name: value for name, value in os.environ.items() if name not in KEPT_OUT}


def ran(source, folder, installed_plugin):
    """Return the process that ran a program in a folder without an error or a warning."""
    script = folder / "guide.py"
    script.write_text(source, encoding="utf-8")
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # `rankeval` of this Python
    spool = str(folder / "spool")  # a guide to outages leaves uploads there
    environment = {**in_a_project(folder), "PATH": search, "RANKEVAL_SPOOL": spool}
    environment["PYTEST_ADDOPTS"] = "-p no:randomly"  # it says its seed, and the guide has no such line
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(installed_plugin)]))
    done = forking.run(script, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    return done


def marked(path):
    """Return the path of a guide with the marks of its circle and of the packages that it imports."""
    text = path.read_text(encoding="utf-8")
    large = [name for name in LARGE if re.search(rf"^(import|from) {name}\b", text, re.MULTILINE)]
    wider = pytest.mark.rest if path.name in LONG else pytest.mark.docs
    marks = [] if path.name in FIRST else [wider]
    marks += [pytest.mark.worth(WORTH[path.name])] if path.name in WORTH else []
    marks += [pytest.mark.needs(*large)] if large else []
    marks += [pytest.mark.spark] if "import rankeval_spark" in program(text) else []
    return pytest.param(path, marks=marks, id=path.name)


def compare(name, said, expected):
    """Assert that each block printed what stands below it."""
    for line, output in expected:
        assert trimmed(said[line]) == trimmed(output), f"{name}, line {line}"


@pytest.mark.parametrize("path", [marked(one) for one in GUIDES])
def test_a_guide_runs_from_top_to_bottom(path, tmp_path, installed_plugin):
    """Where the shared collections are, it reads them too: we may not distribute them."""
    text = path.read_text(encoding="utf-8")
    folders, of_collections = needed(text) if SHARED.is_dir() else ((), [])
    for folder in folders:
        (tmp_path / folder).symlink_to(SHARED / folder)
    done = ran(program(text, collections=bool(folders)), tmp_path, installed_plugin)
    failing = sum(error is not None for _, error, _ in blocks(text))
    assert done.stdout.count("failed as it should") == failing
    said = printed(done.stdout)
    compare(path.name, said, [*shown(text), *of_collections])
    for line, part in messages(text):
        assert " ".join(part.split()) in " ".join(said[line].split()), f"{path.name}, line {line}"
    # The guide to the guard makes and commits the ledger of a project; the collections have tests of their own.
    makes_one = "guard" in path.stem or folders
    assert makes_one or not (tmp_path / FOLDER).exists(), "it would refuse the reader's own work later"


def groups():
    """Return the names of the pages below each heading of the list."""
    parts = re.split(r"^## ", LIST.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: re.findall(r"\]\((\w+\.md)\)", part) for part in parts}


LISTED = groups()
WITH_A_RESULT = [*LISTED["Learn"], *LISTED["How-to"]]


def test_the_list_has_each_guide_once():
    found = [name for names in LISTED.values() for name in names]
    assert sorted(found) == [path.name for path in GUIDES if path.parent == LIST.parent]


def test_the_list_has_four_headings_and_five_pages_to_learn():
    assert [*LISTED] == ["Learn", "How-to", "Explain", "Look up"]
    assert len(LISTED["Learn"]) == 5


def opening(name):
    """Return the title of a guide, and the paragraph below it as one line."""
    text = (LIST.parent / name).read_text(encoding="utf-8")
    title, paragraph = text.split("\n\n")[:2]
    return title, " ".join(paragraph.split())


@pytest.mark.parametrize("name", [name for names in LISTED.values() for name in names])
def test_a_guide_begins_with_its_task(name):
    """A title, and a sentence: neither a block of code, a table, a list nor a picture."""
    title, paragraph = opening(name)
    assert re.fullmatch(r"# \S.*", title)
    sentence = re.match(r"(?!```)[A-Z`][^|]*?[.:?](?= |$)", paragraph)
    assert sentence, f"{name} begins with: {paragraph[:120]}"
    assert len(sentence[0].split()) <= 50, f"{name} begins with a sentence of more than 50 words"


@pytest.mark.parametrize("name", WITH_A_RESULT)
def test_a_result_stands_on_the_first_screen(name):
    """Within 60 lines a reader sees what comes out: printed output or a picture."""
    lines = (LIST.parent / name).read_text(encoding="utf-8").splitlines()[:60]
    found = [line for line in lines if re.match(r"```(text|console)$|!\[", line)]
    assert found, f"{name} shows no output in its first 60 lines"


def test_the_guide_to_refused_groups_has_its_twelve_ways():
    """They end the page: eleven fail today, the twelfth is silently wrong. The way that works comes before."""
    text = (LIST.parent / "refused_groups.md").read_text(encoding="utf-8")
    before, _, appendix = text.partition("\n## Twelve obvious ways that fail\n")
    sections = re.split(r"^### (?=\d+\. )", appendix, flags=re.MULTILINE)[1:]
    assert [int(section.partition(".")[0]) for section in sections] == list(range(1, 13))
    assert [[error is None for _, error, _ in blocks(section)] for section in sections] == [[False]] * 11 + [[True]]
    assert [len(list(messages(section))) for section in sections] == [1] * 11 + [0]
    assert not re.search("^## ", appendix, re.MULTILINE)
    first = next(code for _, _, code in blocks(before))
    assert "rk.QueryRanker" in first
    assert "qid=qid" in first


def written_here(text):
    """Return the calls in the column "here" of the tables of a guide."""
    tables = re.findall(r"^\| there \| here \|.*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [row.split(" | ")[1] for table in tables for row in table.splitlines()]
    return [re.fullmatch("`(.*)`", cell)[1] for cell in cells]


def statement(call):
    """Return a call of Python, or of the shell, as a statement of a program."""
    return f"subprocess.run({call!r}, shell=True, check=True)" if call.startswith("rankeval ") else call


@pytest.mark.docs
def test_each_call_that_the_guide_to_other_tools_proposes_runs(tmp_path, installed_plugin):
    """One after the other, behind the blocks of the page, whose names they use."""
    text = (LIST.parent / "migrating.md").read_text(encoding="utf-8")
    calls = written_here(text)
    assert len(calls) > 25
    quiet = "import warnings\nwarnings.simplefilter('ignore', UserWarning)"  # the notes on three queries
    ran("\n".join([program(text), quiet, *map(statement, calls)]), tmp_path, installed_plugin)
