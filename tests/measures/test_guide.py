"""The guide to the measures is made from the declarations."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tables import each_row

import rankeval as rk
from rankeval.collection.convention import CHOICES as RULES
from rankeval.collection.convention import PRESETS
from rankeval.measures.guide import CHOICES, measures_markdown

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guides" / "measures.md"


def test_the_guide_is_what_the_command_prints():
    """The file in the repository is the output of ``rankeval measures --format markdown``, to the byte."""
    # In a process of its own: other tests declare measures too.
    command = (
        "import sys; sys.argv = ['rankeval', 'measures', '--format', 'markdown']; from rankeval.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True)
    assert done.stdout.decode() == GUIDE.read_text(encoding="utf-8"), (
        "run: rankeval measures --format markdown > examples/guides/measures.md"
    )


def test_every_measure_preset_and_spelling_is_in_it():
    """No measure, preset or spelling is missing, and every row has as many cells as its head."""
    text = measures_markdown()
    for name in PRESETS:
        assert f"| `{name}` |" in text
    for name, row in rk.list_measures().iterrows():
        line = next(line for line in text.splitlines() if line.startswith(f"| **{name.replace('_', chr(92) + '_')}**:"))
        assert row["doi"] in line
        for tool in filter(None, row["spellings"].split("; ")):
            assert all(f"`{one}`" in line for one in tool.partition(": ")[2].split(", ")), line
    for table in text.split("\n\n"):
        if table.startswith("|"):
            widths = {len(line.replace("\\|", "").split("|")) for line in table.strip().splitlines()}
            assert len(widths) == 1, table.splitlines()[0]


@each_row("choice", CHOICES, ids=lambda choice: choice.question)
def test_each_answer_is_a_measure_or_a_rule(choice):
    """Each answer can be written as the table says."""
    rule, _, value = choice.ours.partition("='")
    if rule in RULES:
        assert value.rstrip("'") in RULES[rule]
    else:
        assert str(rk.measure(choice.ours)) == choice.ours


def test_presets_do_what_the_table_says_of_their_tools():
    """If a tool has a preset, the preset has the rule under which the table names the tool."""
    for choice in CHOICES:
        rule, _, value = choice.ours.partition("='")
        for preset, tool in {"sklearn": "scikit-learn", "gdeval": "gdeval", "ranx": "ranx", "lightgbm": "LightGBM",
                             "xgboost": "XGBoost"}.items():  # fmt: skip
            if rule in ("ties", "judgments", "no_relevant") and tool in choice.who:
                assert getattr(PRESETS[preset], rule) == value.rstrip("'"), (preset, choice)
