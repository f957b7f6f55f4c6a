"""The process in which pytrec_eval runs gives its values on tied scores, and ends in time, in words."""

from __future__ import annotations

import pytest
from golden.peers import pytrec_eval_values
from tables import each_row

TIED = {
    "qrels": {"q1": {f"d{number}": number % 3 for number in range(30)}, "q2": {"d1": 1, "d2": 0}},
    "run": {"q1": {f"d{number}": float(number % 2) for number in range(40)}, "q2": {"d2": 1.0, "d1": 1.0}},
    "measures": ["map", "ndcg", "recip_rank", "P.5,10", "ndcg_cut.10", "Rprec"],
    "level": 1,
    "judged_only": False,
}


@each_row("hash_seed", ["0", "1", "3", "4", "5"])
def test_values_do_not_depend_on_the_seed_of_hashes(hash_seed):
    """Version 0.5.11 has hung on ties under 1, 3, 4 and 5."""
    (values,) = pytrec_eval_values([TIED], hash_seed=hash_seed)
    assert values["q2"]["recip_rank"] == 0.5  # the larger id stands first
    assert values["q1"]["map"] == pytest.approx(0.4690333866874298, abs=1e-12)


def test_no_answer_in_time_is_a_failure_in_words():
    with pytest.raises(pytest.fail.Exception, match=r"pytrec_eval was ended after 0\.01 s, PYTHONHASHSEED=0, with 0"):
        pytrec_eval_values([TIED], seconds=0.01)
