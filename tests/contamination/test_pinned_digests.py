"""Digests are pinned: what stands in somebody's ledger must be found again by the next version.

An exact digest changes here only knowingly: until issue 9 is done by naming the change in the commit, afterwards by a
new version of the scheme beside the old one.
"""

import hashlib

import numpy as np
import pytest

from rankeval.collection.qrels import Qrels
from rankeval.collection.run import Run
from rankeval.contamination.fingerprint import fingerprint, fingerprint_qrels, run_outputs
from rankeval.contamination.hashing import keys, text_hashes
from rankeval.contamination.signature import Signature
from rankeval.guard.collection import output_digest
from rankeval.ledger import ledger as ledger_module
from rankeval.ledger.arrays import pack
from rankeval.ledger.discovery import ledger_url

X = [
    [0.5, -1.25, 3.0, 0.0],
    [np.nan, 2.0, 1e300, -0.0],
    [0.1, 0.2, 0.3, 7.0],
    [1.0, 1.0, 2.0, 3.0],
    [1.0, 1.0, 2.0, 3.0],
]
LABELS = [2, 0, 1, 0, 3]
QUERY = ["b", "b", "a", "a", "b"]
DOCUMENT = ["d1", "ein Dokument mit Ümlaut", "d1", "3", "d2"]
TEXTS = {"a": " What  is\tRecall? ", "b": "Straße ﬁrst"}
JUDGED = {"labels": "d1bb09c75553d830 1d4984c7b658154e", "judgments": "e8e5947f8bd24caa be90acc9f53ae5fe"}


def hexadecimal(hashes):
    return {kind: " ".join(f"{one:016x}" for one in values.tolist()) for kind, values in hashes.items()}


def test_rows_have_the_digest_that_ledgers_hold():
    rows = fingerprint(X, LABELS, QUERY, docid=DOCUMENT, queries=TEXTS)
    assert rows.digest == "d516da30d6f5480546c0d051b43d330c55346a4bfc2ec38d231cbbb789da5db2"
    assert hexadecimal(rows.queries) == {
        "features": "3d129e13648039e8 d3d79fe6e6c46ac6",
        "text": "0d17eec29d5c48c4 8dc50851f715763f",
        **JUDGED,
    }
    assert fingerprint(X, None, QUERY).digest == "09eda5e3447f793bc1f77b8401bf6287d29c364b8b358758818f1f688429760b"
    assert fingerprint(None, LABELS, QUERY).digest == "95c3d93b8ad5768c4f64e0158b0d44997cf5c37a10d8da8725256b92519071fa"


def test_judgments_have_the_digest_that_ledgers_hold():
    judgments = fingerprint_qrels(Qrels(QUERY, DOCUMENT, LABELS), queries=TEXTS)
    assert judgments.digest == "4491fa286cad27ef1806fd428d7a66aa26e28e7e3bf37da16826a5d1534f4429"
    assert hexadecimal(judgments.queries) == {
        "documents": "31fe003eb22dd1f2 2ffdf21549931d31",
        "text": "0d17eec29d5c48c4 8dc50851f715763f",
        **JUDGED,
    }
    aspects = Qrels(QUERY, DOCUMENT, LABELS, aspect=["1", "2", "1", "1", "2"])
    assert fingerprint_qrels(aspects).digest == "c526be9f176bbbbb5d1d37cb9d0dffae02ffaad8efb488bc946aac007c7befbb"
    groups = Qrels(QUERY, DOCUMENT, LABELS, aspect=["1", "2", "1", "1", "2"], subgroup=["x", "x", "y", "x", "x"])
    assert fingerprint_qrels(groups).digest == "aec96d23a92427335523bf9a1c812272faf852591c12f92ae26ffdf2eab3205a"


def test_rankings_have_the_outputs_under_which_looks_are_counted():
    outputs = fingerprint(X, LABELS, QUERY, docid=DOCUMENT).outputs([0.5, 0.5, 2.0, -1.0, 3.0])
    assert hexadecimal(outputs) == {
        "features": "0a2305bb27220c09 397c02b1a56b1b4c",
        "documents": "7d6b30019162d76b 8a267a104932f09f",
        "labels": "ef5b57c9bdd7b6c9 28956c4d8832745b",
    }
    assert output_digest(outputs) == "ffc9d587dec4161c2208411115a75478d81954dcfe8a094b0c0e139b71b4e5a7"
    run = Run(["b", "b", "a", "b", "c"], ["d2", "d1", "3", "x", "d1"], [1.0, 2.0, 0.5, 2.0, 1.0])
    ranked = run_outputs(fingerprint_qrels(Qrels(QUERY, DOCUMENT, LABELS)), run)
    assert hexadecimal(ranked) == {
        "documents": "ac4626a1839a4d6e 22754b20467acebc",
        "ranked": "3c4785729884b262 49797602635ebef9",
    }
    assert output_digest(ranked) == "3e5e9422bb005db54b1c080022456d34ab5d732f9e94d2a7a502a20fbfd44bba"


def test_ids_and_columns_have_the_hashes_that_all_else_is_made_of():
    assert hexadecimal({"ids": text_hashes(["", "d1", "12", "été"])}) == {
        "ids": "0000000000000000 dd76afe972c345eb b7a9c590897d72e3 3a7e7485cbaf4869"
    }
    assert hexadecimal({"columns": keys(3), "letters": keys(2, salt=1)}) == {
        "columns": "9ca066f1a4ab2eeb d30b054265133dd7 d7f1515598b6b983",
        "letters": "e5fdc025e13eeed5 e85028e6b31f8e7b",
    }


def test_an_entry_has_the_hash_that_the_next_one_names(tmp_path, monkeypatch):
    """Reports and runs remember heads: the same entries lead to the same head for good."""
    monkeypatch.setattr(ledger_module, "_now", lambda: "2026-01-02T03:04:05+00:00")
    ledger = ledger_module.Ledger(ledger_url(tmp_path / "ledger"), who="user@host")
    first = ledger.append("Projekt ä", ("note", {"n": 1, "text": "é", "list": [1.5, None]}))
    second = ledger.append("p", ("note", {}))
    assert first.hash == "efa2d0bba9aa81620b7b135dbf2faf3576343646f7719394bf7a4aa5348aefd9"
    assert second.hash == "239fccfc61159136da8867d73580c27219c400869dff4e466c20f2f584f6a1bc"


def test_a_signature_is_found_again_by_the_next_version():
    """A registration is matched by these values: rounded rows, columns, documents with labels, ids and counts.

    Until issue 43 the bits of rows counted digits; ledgers of then are read as those of now (test_short_lists).
    """
    signature = Signature.of(fingerprint(X, LABELS, QUERY, docid=DOCUMENT))
    assert (
        hashlib.sha256(pack(signature.arrays())).hexdigest()
        == "c1c68fe0287bacece25b7770da161c1553cefe6a2a87cea30d99de8f8b508467"
    )
    rng = np.random.default_rng(0)
    wide = Signature.of(fingerprint(rng.normal(size=(40, 3)), rng.integers(0, 4, 40), np.arange(40) // 20)).arrays()
    more = {name: wide.pop(name) for name in list(wide) if name.startswith("more_rows.")}  # since issue 24
    assert hashlib.sha256(pack(wide)).hexdigest() == "3b8476a3c39f7578c7728b5b2021fca8516ab3da5a0c32b8e32ed5e1108327f5"
    assert hashlib.sha256(pack(more)).hexdigest() == "d35f545bf4f5e2ef7cdc6e1db4ee2fdf3e08b0469b0748d63949f7f6582e7004"


@pytest.mark.parametrize(
    ("array", "packed"),
    [
        (
            np.array([1, 2**63], dtype=np.uint64),
            b'[["a", "<u8", 2]]\n' + bytes.fromhex("01000000000000000000000000000080"),
        ),
        (np.array([True, False, True]), b'[["a", "|b1", 3]]\n' + bytes.fromhex("010001")),
        (
            np.array([0.5, -1.0], dtype=">f8"),
            b'[["a", "<f8", 2]]\n' + bytes.fromhex("000000000000e03f000000000000f0bf"),
        ),
    ],
)
def test_arrays_are_packed_alike_on_every_machine(array, packed):
    assert pack({"a": array}) == packed
