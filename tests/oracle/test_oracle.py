"""The oracle itself: equal results have equal digests, and any other difference has its class."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import types
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from oracle import coverage
from oracle.calls import load_recipes, recipe_of
from oracle.differences import CLASSES, class_of
from oracle.digest import Describer, digest
from oracle.drawing import Draw
from oracle.environments import CHECKOUT, copy_program, export
from oracle.masks import Masks
from oracle.names import MissingNameError, Names
from oracle.spoiling import spoiled_call

VALUES = (
    *(
        1,
        1.0,
        True,
        "1",
        None,
        0.0,
        -0.0,
        float("nan"),
        (1,),
        [1],
        {1},
        {"a": 1},
        b"1",
        Fraction(1),
    ),
    *(np.float32(1), np.float64(1), np.array([1]), np.array([1.0]), np.array([[1]])),
    *(
        pd.Series([1]),
        pd.Series([1], name="a"),
        pd.Series([1], index=["a"]),
        pd.DataFrame({"a": [1]}),
    ),
    *(dt.date(2024, 3, 1), Path("a"), ValueError("a"), TypeError("a"), int),
)


def tree_of(value, **masks):
    """Return the tree of a value, with the names of today."""
    return Describer(Masks(**masks), Names()).of(value)


def test_values_that_differ_in_type_shape_or_sign_have_different_digests():
    """Also 1, 1.0 and True, and the two zeros; each value has the same digest again."""
    digests = [digest(tree_of(value)) for value in VALUES]
    assert len(set(digests)) == len(VALUES)
    assert digests == [digest(tree_of(value)) for value in VALUES]


@pytest.mark.parametrize("make", [float, np.float64, lambda x: np.array([x]), lambda x: {"a": [x]}])
def test_a_single_bit_is_seen(make):
    assert digest(tree_of(make(0.1))) != digest(tree_of(make(np.nextafter(0.1, 1))))


def test_a_mapping_has_no_order_and_a_list_has_one():
    assert digest(tree_of({"a": 1, "b": 2})) == digest(tree_of({"b": 2, "a": 1}))
    assert digest(tree_of(["a", "b"])) != digest(tree_of(["b", "a"]))


def test_what_differs_between_runs_is_masked_and_nothing_else():
    now = dt.datetime.now(dt.UTC)
    masked = {
        f"made at {now.isoformat()}": "made at <time>",
        f"{now:%Y-%m-%d}": "<time>",
        "a click at 2024-03-01 10:15:00": "a click at 2024-03-01 10:15:00",
        f"{now.timestamp():.3f}": "<time>",
        "1234567890": "1234567890",
        "run 0123456789abcdef0123456789abcdef": "run <id>",
        "<a at 0x7f3fb53c6010>": "<a at <address>>",
        "/home/x/call-7/a.csv": "<folder>/a.csv",
        "rankeval-mlflow 0.1.0": "rankeval-mlflow <version>",
        "digest 1a2b3c4d5e6f": "digest 1a2b3c4d5e6f",
    }
    texts = Masks({"/home/x/call-7": "<folder>"})
    assert {text: texts.text(text) for text in masked} == masked


def test_a_recipe_may_ask_for_wider_masks():
    wide = Masks(hashes=True, timed=True)
    assert (
        wide.text("head 1a2b3c4d5e6f, 12 queries in 0.52 s")
        == "head <hash>, 12 queries in <duration>"
    )
    assert tree_of({"fit_seconds": 0.2, "n": 3}, timed=True) == {
        "mapping": {"fit_seconds": "<time>", "n": 3}
    }
    table = "<table><tr><th>n</th><th>seconds</th></tr><tr><td>3</td><td>0.25</td></tr></table>"
    assert wide.text(table).endswith("<td>3</td><td><time></td></tr></table>")


def test_an_error_of_ours_is_its_class_its_bases_its_fields_and_its_message():
    from rankeval.errors import UnknownName

    tree = tree_of(UnknownName(argument="test", found="'x'", expected="t"))
    assert tree["error"] == "UnknownName"
    assert tree["bases"][:4] == ["UnknownName", "InvalidInput", "RankevalError", "ValueError"]
    assert (tree["fields"]["argument"], tree["fields"]["remedy"]) == ("test", None)
    assert tree["message"] == "test is 'x'; expected t"


def test_a_property_that_raises_is_part_of_the_tree():
    @dataclass
    class Result:
        n: int

        @property
        def half(self):
            raise ValueError("no half")

    Result.__module__ = "rankeval.fake"
    fields = tree_of(Result(3))["fields"]
    assert (fields["n"], fields["half"]["error"]) == (3, "ValueError")


def test_the_inputs_of_a_call_follow_from_its_seed_and_number():
    recipes = load_recipes()
    assert [recipe_of(0, at, recipes).name for at in range(50)] == [
        recipe_of(0, at, recipes).name for at in range(50)
    ]
    first, again, other = (Draw(0, number).rows() for number in (4, 4, 5))
    assert digest(tree_of(first)) == digest(tree_of(again)) != digest(tree_of(other))


def test_a_fifth_of_the_calls_is_wrong_and_how_follows_from_the_seed():
    wrong = [Draw(0, number).wrong for number in range(2000)]
    assert 0.17 < np.mean(wrong) < 0.23
    argument = {"qid": np.arange(5), "measures": ["nDCG@10"]}
    spoiled = [spoiled_call((), argument, Draw(0, 3).mischief) for _ in range(2)]
    assert (
        digest(tree_of(spoiled[0]))
        == digest(tree_of(spoiled[1]))
        != digest(tree_of(((), argument)))
    )


@pytest.mark.worth("imports all public modules, MLflow's plugin among them")
def test_every_public_function_method_and_command_has_a_recipe_or_a_reason():
    assert coverage.missing() == []
    assert set(coverage.EXEMPT) <= set(coverage.public_names()), (
        "an exempt name that is not public any more"
    )
    assert all(reason.strip() for reason in coverage.EXEMPT.values())


def test_every_family_of_measures_has_a_recipe():
    from oracle.recipes_measures import FAMILIES

    from rankeval.measures.family import FAMILIES as DECLARED

    # Other tests of this process declare measures of their own.
    ours = {
        name
        for name, family in DECLARED.items()
        if family.kernel.__module__.startswith("rankeval.")
    }
    assert set(FAMILIES) == ours


@pytest.fixture
def package(monkeypatch):
    """Offer a package in which a function, an argument, a field and an error have new names."""
    fake = types.ModuleType("fake")

    def analysed(scores, *, confidence_level=0.95, claim="difference"):
        return scores, confidence_level, claim

    fake.analysed = analysed
    monkeypatch.setitem(sys.modules, "fake", fake)
    return fake


def test_a_table_of_names_leads_from_old_names_to_new(package):
    arguments = {
        "fake.anova": {"alternative": {"to": "claim", "values": {"greater": "better"}}},
        "*": {"level": "confidence_level"},
    }
    names = Names(names={"fake.anova": "fake.analysed"}, arguments=arguments)
    found = names.find("fake.anova")
    assert found is package.analysed
    translated = names.translated("fake.anova", found, {"level": 0.9, "alternative": "greater"})
    assert found(1, **translated) == (1, 0.9, "better")
    with pytest.raises(MissingNameError, match=r"fake\.other"):
        names.find("fake.other")


def test_a_table_of_names_has_no_effect_where_the_old_name_is_there(package):
    package.anova = lambda scores, *, level=0.95: (scores, level)
    names = Names(
        names={"fake.anova": "fake.analysed"}, arguments={"*": {"level": "confidence_level"}}
    )
    found = names.find("fake.anova")
    assert found(1, **names.translated("fake.anova", found, {"level": 0.9})) == (1, 0.9)


def test_renamed_fields_classes_and_words_leave_the_digest_as_it_was():
    def described(field, kind, word):
        made = type(kind, (Exception,), {"__module__": "rankeval.fake"})(f"give {word}")
        setattr(made, field, 0.9)
        names = Names(
            fields={"*": {"level": "confidence_level"}}, classes={"Shared": "SharedRefusal"}
        )
        masks = Masks(renamed={"rk.analysis.anova": "rk.anova"})
        return Describer(masks, names).of(made)

    new = described("confidence_level", "SharedRefusal", "rk.analysis.anova")
    assert new == described("level", "Shared", "rk.anova")


def test_names_of_commands_and_options_are_translated():
    names = Names(commands={"guard looks": "guard list"}, options={"--resamples": "--n"})
    line = names.command_line(("guard", "looks", "p", "--resamples", "9"))
    assert line == ["guard", "list", "p", "--n", "9"]


def test_the_table_of_names_can_be_read():
    table = Names.read()
    assert table.names["rankeval.anova"] == "rankeval.analysis.anova"
    assert table.arguments["rankeval.cross_validate"]["unit"] == "groups"


def call_tree(*steps, files=(), warned=()):
    """Return the tree of a call with these steps."""
    described = [[name, tree_of(value)] for name, value in steps]
    return {
        "steps": described,
        "warnings": list(warned),
        "printed": {"out": "", "err": []},
        "files": list(files),
    }


OK = ("f", 0.5)
ERROR = ("raised", ValueError("no"))
CASES = {
    "missing name": (call_tree(OK), call_tree(("missing", "rk.f"))),
    "died": (call_tree(OK), {"died": "exit code -11"}),
    "only old raises": (call_tree(ERROR), call_tree(OK)),
    "only new raises": (call_tree(("f", 1.0)), call_tree(("f", ValueError("no")))),
    "error class": (call_tree(ERROR), call_tree(("raised", TypeError("no")))),
    "error message": (call_tree(ERROR), call_tree(("raised", ValueError("not so")))),
    "shape/type": (call_tree(("f", np.arange(3))), call_tree(("f", np.arange(3.0)))),
    "value": (call_tree(OK), call_tree(("f", 0.5001))),
    "last bits": (call_tree(OK), call_tree(("f", float(np.nextafter(0.5, 1))))),
    "files": (call_tree(OK, files=[["a", "x"]]), call_tree(OK, files=[["a", "y"]])),
    "words": (call_tree(("f", "a gain")), call_tree(("f", "no gain"))),
}


@pytest.mark.parametrize("kind", CASES)
def test_a_difference_has_its_class(kind):
    found, places = class_of(*CASES[kind])
    assert (found, places[0].kind) == (kind, kind)
    assert kind in CLASSES


def test_an_error_with_other_fields_is_more_than_another_message():
    from rankeval.errors import InvalidInput

    old, new = (
        call_tree(("raised", InvalidInput("no", argument=name))) for name in ("level", "alpha")
    )
    assert class_of(old, new)[0] == "error fields"


def test_a_number_in_a_text_is_a_value():
    assert class_of(call_tree(("f", "mean 0.52")), call_tree(("f", "mean 0.53")))[0] == "value"
    assert class_of(call_tree(("f", "mean 0.52")), call_tree(("f", "mean 0.520")))[0] == "last bits"


def test_a_worker_sees_the_program_and_the_commit_alone(tmp_path):
    """The copy has no tests, and the source of a commit none either."""
    program = copy_program(tmp_path / "program")
    assert (program / "oracle" / "names.toml").is_file()
    assert not list(program.rglob("test_*.py"))
    export(".", tmp_path / "source")
    assert (tmp_path / "source" / "rankeval" / "__init__.py").is_file()
    assert not (tmp_path / "source" / "tests").exists()


SMALLER = (
    '@(lambda kernel: __import__("functools").wraps(kernel)'
    "(lambda judged, **options: kernel(judged, **options) * 0.75))\n"
)


def doctor(package: Path) -> None:
    """Let the reciprocal rank be a quarter smaller, wherever it is defined."""
    definition = "def reciprocal_rank("
    path = next(path for path in package.rglob("*.py") if definition in path.read_text("utf-8"))
    path.write_text(path.read_text("utf-8").replace(definition, SMALLER + definition))


@pytest.mark.fuzz
@pytest.mark.timeout(1200)
def test_a_changed_formula_is_a_difference_of_values(tmp_path):
    """The working tree does not differ from itself; a copy with another formula does, in values."""

    def run(new, *words):
        command = [sys.executable, "-m", "oracle", ".", str(new), "--borrow", "--quiet", *words]
        return subprocess.run(
            command, cwd=CHECKOUT / "tests", capture_output=True, text=True, check=False
        )

    same = run(".", "--calls", "300")
    assert same.returncode == 0, same.stdout + same.stderr
    export(".", tmp_path / "doctored")
    doctor(tmp_path / "doctored" / "rankeval")
    changed = run(tmp_path / "doctored", "--calls", "300", "--only", "evaluation")
    assert changed.returncode == 1, changed.stdout + changed.stderr
    assert "\nvalue: " in changed.stdout
