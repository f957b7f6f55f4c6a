"""Build the documentation: the README, these guides, and a reference of all public names from their docstrings.

::

    sphinx-build -W -n -b html examples/guides BUILD

Sphinx reads pages from one folder only. The README and CONTRIBUTING are in other folders, and the pages of the
reference are in no folder. So all pages are gathered in the build folder first, and Sphinx is pointed there.

    README.md                 -> index.md, with the menu
    .github/CONTRIBUTING.md   -> contributing.md, and SECURITY.md and CHANGELOG.md likewise
    examples/guides/README.md -> guides.md, and the menu: a caption for each "##",
                                 and a page howto-NAME.md for each "###", with the table below it
    examples/guides/*.md, png -> under their own names
    docstrings                -> reference.md, at its end: a table of names for each room
                                 reference/NAME.rst: a page for each name, which the menu does not list

The trap: Furo writes the whole menu into every page. With 300 names of the reference in it, the site would have twice
the bytes, and the guides would be hard to find.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

GUIDES = Path(__file__).resolve().parent
ROOT = GUIDES.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "integrations")]

import rankeval  # noqa: E402 - the checkout, not an installed version

project = "rankeval"
project_copyright = "The rankeval-mlflow developers"
version = release = rankeval.__version__

extensions = [
    "myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_copybutton",
]  # fmt: skip
html_theme = "furo"  # follows the width of the window, has search and a dark mode, and loads nothing from elsewhere
html_title = f"rankeval {version}"
html_static_path = [str(GUIDES / "site.css")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "github-dark"
# The button copies programs and commands: no output, and no prompt of a shell or of a docstring's example.
copybutton_selector = "div.highlight-python pre, div.highlight-bash pre, div.highlight-yaml pre, div.doctest pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .go"
myst_heading_anchors = 3
default_role = "py:obj"  # in a docstring `Evaluation` is a link, and an error if there is no such name
autodoc_typehints = "none"  # the docstrings have the types
autosummary_generate = False
numpydoc_show_class_members = False
toc_object_entries = False  # the sidebar lists pages, not methods
nitpick_ignore_regex = [
    # scikit-learn writes the docstrings of set_fit_request and the like, with links into its own documentation. To
    # follow these links, the build would need the network.
    (r"py:.*", r"sklearn\..*"),
    (r"std:.*", r"metadata_routing|meta-estimator"),
]

# Modules whose public names are named by their module.
MODULES = (
    "rankeval.analysis",
    "rankeval.analysis.curves",
    "rankeval.datasets",
    "rankeval.errors",
    "rankeval.io",
    "rankeval.judging",
    "rankeval.model_selection",
    "rankeval.testing",
    "rankeval.online",
    "rankeval.text",
    "rankeval_mlflow",
    "rankeval_spark",
)

# The sections of the reference beside those of `import rankeval`: a title and the modules' names in it.
EXTENDING = {
    "Extending: a measure": ["rankeval.measures.Family"],
    "Extending: a significance test or a correction": [
        "rankeval.significance.SignificanceTest",
        "rankeval.significance.Correction",
        "rankeval.significance.declarations.Settings",
        "rankeval.significance.PairedResult",
        "rankeval.significance.declarations.TESTS",
        "rankeval.significance.declarations.CORRECTIONS",
    ],
    "Extending: a file format": [
        "rankeval.io.formats.Format",
        "rankeval.io.formats.add_format",
        "rankeval.io.formats.OpenFile",
        "rankeval.io.columns.Columns",
    ],
    "Extending: a host": [
        "rankeval.tracking.Host",
        "rankeval.tracking.Tracker",
        "rankeval.tracking.RunRecord",
        "rankeval.tracking.LoggedData",
        "rankeval.tracking.TrackedRun",
        "rankeval.tracking.StoredRun",
    ],
    "Extending: a guard check": [
        "rankeval.guard.guard_check",
        "rankeval.guard.list_checks",
        "rankeval.guard.checks.Registration",
        "rankeval.guard.checks.Finding",
    ],
}

MOVED = {
    "index.md": "README.md",
    "guides.md": "examples/guides/README.md",
    "contributing.md": ".github/CONTRIBUTING.md",
    "security.md": ".github/SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
"""Pages of the site -> files that stand elsewhere in the checkout."""

LINK = re.compile(r"(?P<before>\]\(|^\[[^\]\n]+\]: )(?P<path>[\w./-]+)(?P<after>#[\w-]+|(?=\)|$))", re.MULTILINE)

FAILING = re.compile(r"^```python fails (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block that must raise; the theme would show it like any other."""

PAGE = """\
:orphan:

{title}
{line}

:doc:`Reference </reference>` / ``{module}``

.. currentmodule:: {module}

.. auto{kind}:: {title}
"""

SECTION = """
## {title}

```{{eval-rst}}
.. currentmodule:: {module}

.. autosummary::
   :nosignatures:

   {names}
```
"""

MENU = """
```{{toctree}}
:hidden:
{options}
{entries}
```
"""


def sections() -> dict[str, list[str]]:
    """Return the public names, each with its module, by the title of their section."""
    found: dict[str, list[str]] = {}
    for name in rankeval.__all__:
        public = getattr(rankeval, name)
        if not isinstance(public, ModuleType):
            room = ".".join(public.__module__.split(".")[:2])
            found.setdefault(title_of(room), []).append(f"rankeval.{name}")
    for module in MODULES:
        names = [f"{module}.{name}" for name in public_names(importlib.import_module(module))]
        found.setdefault(title_of(module), []).extend(names)  # of some rooms, names are in `import rankeval` too
    return found | EXTENDING


def title_of(module: str) -> str:
    """Return the beginning of a module's docstring, up to a colon or a full stop."""
    text = inspect.getdoc(importlib.import_module(module)) or module
    title = re.split(r"[:.]", " ".join(text.split()).removeprefix(f"{module}: "))[0]
    return title[0].upper() + title[1:]


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__` of a module, or the functions and classes that it defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return list(getattr(module, "__all__", [name for name in own if not name.startswith("_")]))


def page(full_name: str) -> str:
    """Return the page of a public name, in reStructuredText."""
    module, _, name = full_name.rpartition(".")
    public: Any = getattr(importlib.import_module(module), name)
    options = ""
    if inspect.isclass(public):
        kind = "exception" if issubclass(public, BaseException) else "class"
        # Methods of our own base classes belong to the page; those of scikit-learn's have pages elsewhere.
        foreign = [base.__name__ for base in public.__mro__ if not base.__module__.startswith("rankeval")]
        options = f"   :members:\n   :inherited-members: {', '.join(foreign)}\n"
    elif callable(public):
        kind = "function"
    else:
        kind = "data"
        options = "   :no-value:\n"
    return PAGE.format(title=name, line="=" * len(name), module=module, kind=kind) + options


def write_reference(folder: Path) -> None:
    """Append the tables of all public names to their guide, and write a page for each."""
    (folder / "reference").mkdir()
    parts = []
    for title, names in sections().items():
        module = names[0].rpartition(".")[0]  # descriptions link to names beside them
        for name in names:
            (folder / "reference" / f"{name}.rst").write_text(page(name), encoding="utf-8")
        parts.append(
            SECTION.format(
                title=title,
                module=module,
                names="\n   ".join(name.removeprefix(f"{module}.") for name in names),
            )
        )
    with (folder / "reference.md").open("a", encoding="utf-8") as file:
        file.writelines(parts)


def parts_of(text: str, mark: str) -> list[tuple[str, str]]:
    """Return the title and the text of each part of a page that begins with a heading of this mark."""
    found = re.split(rf"^{mark} (.*)\n", text, flags=re.MULTILINE)[1:]
    return list(zip(found[::2], found[1::2], strict=True))


def entries_of(text: str) -> list[str]:
    """Return the links of a part of the list of guides as entries of a menu, in their order."""
    return [f"{title} <{page}>" for title, page in re.findall(r"\[([^\]]+)\]\((\w+)\.md\)", text)]


def menu(caption: str, entries: list[str]) -> str:
    """Return one menu of the sidebar, below its caption if it has one."""
    return MENU.format(options=f":caption: {caption}\n" * bool(caption), entries="\n".join(entries))


def write_menus(folder: Path) -> None:
    """Append a menu for each heading of the list of guides to the first page, and write a page for each group."""
    text = (folder / "guides.md").read_text(encoding="utf-8")
    menus = [menu("", ["All guides <guides>"])]
    for caption, part in parts_of(text, "##"):
        entries = entries_of(part.partition("\n### ")[0])
        for title, table in parts_of(part, "###"):
            name = "howto-" + re.sub(r"\W+", "-", title.lower())
            entries.append(name)
            group = f"# {title}\n{table}{menu('', entries_of(table))}"
            (folder / f"{name}.md").write_text(group, encoding="utf-8")
        if caption == "Look up":
            entries += ["Security <security>", "Changes <changelog>"]
        menus.append(menu(caption, entries))
    with (folder / "index.md").open("a", encoding="utf-8") as file:
        file.writelines(menus)


def linked(page: Path, folder: Path) -> str:
    """Return a page whose links lead to the gathered pages; of another file of the checkout, a copy is made."""
    pages = {ROOT / path: name for name, path in MOVED.items()}

    def moved(found: re.Match[str]) -> str:
        target = (page.parent / found["path"]).resolve()
        if not target.is_file() or not target.is_relative_to(ROOT):
            return found[0]
        name = pages.get(target, target.name if target.parent == GUIDES else f"files/{target.relative_to(ROOT)}")
        if name.startswith("files/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(target, folder / name)
        return f"{found['before']}{name}{found['after']}"

    text = FAILING.sub(r"```python\n\2```\n\n→ raises `\1`", page.read_text(encoding="utf-8"))
    return LINK.sub(moved, text)


def gather_pages(folder: Path) -> None:
    """Write all pages into an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in GUIDES.glob("*.png"):
        shutil.copy(path, folder)
    guides = {path.name: path for path in GUIDES.glob("*.md") if path.name != "README.md"}
    for name, path in (guides | {name: ROOT / path for name, path in MOVED.items()}).items():
        (folder / name).write_text(linked(path, folder), encoding="utf-8")
    write_menus(folder)
    write_reference(folder)


def setup(app: Sphinx) -> None:
    """Gather the pages, and point Sphinx at them: it looks for pages after this call."""
    app.srcdir = app.doctreedir / "pages"
    gather_pages(app.srcdir)
