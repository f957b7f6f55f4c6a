"""Text: searches, snippets, files of texts, and how long a search takes."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
from fuzz.mutations import mutated
from oracle.calls import Call, recipe
from oracle.drawing import Draw

SCHEMES = (
    "ltc.ltc",
    "lnc.ltc",
    "nnn.nnn",
    "Lnu.ltu",
    "bnn.bnn",
    "atc.npc",
    "apu.bnp",
    "ltn.lnc",
    "ntc",
    "xyz.ltc",
)
STOPS = (None, "english", "english", ["the", "and"], ["the", "and"], "other")


def of_texts(draw: Draw, texts: dict[str, str]) -> Any:
    """Return texts as a dict, a Series or a frame."""
    form = draw.integer(0, 4)
    if form == 0:
        return pd.Series(texts)
    if form == 1:
        return pd.DataFrame({"docid": list(texts), "text": list(texts.values())})
    return texts


@recipe("text", 260)
def vector_space(draw: Draw, call: Call) -> None:
    """Search in the vector space."""
    options = draw.options(
        0.3,
        a=(0.5, 0.0),
        slope=(0.5,),
        log=(10, 2),
        stem=("english", "german", "klingon"),
        stop=STOPS,
    )
    model = call("rankeval.text.VectorSpace", draw.choice(SCHEMES), **options)
    call.of(model, "VectorSpace.fit", of_texts(draw, draw.documents()))
    call.of(model, "VectorSpace.search", draw.queries(), **draw.options(0.5, k=(1, 3, 100)))
    call.keep("parameters", model.get_params())


@recipe("text", 260)
def bm25(draw: Draw, call: Call) -> None:
    """Search by BM25."""
    options = draw.options(
        0.3, k1=(0.9, 0.0, 3), b=(0.4, 0.0, 1.0, 1.5), stem=("english",), stop=STOPS
    )
    model = call("rankeval.text.BM25", **options)
    call.of(model, "BM25.fit", of_texts(draw, draw.documents()))
    call.of(
        model,
        "BM25.search",
        of_texts(draw, draw.queries()) if draw.happens(0.2) else draw.queries(),
        **draw.options(0.5, k=(1, 5)),
    )


@recipe("text", 220)
def pieces(draw: Draw, call: Call) -> None:
    """Take the beginning, the key sentences and the snippets of a document."""
    doc = (
        " ".join(draw.documents(4).values())
        if draw.happens(0.9)
        else draw.choice(("", " ", "é è ü.", "a" * 300))
    )
    query = draw.queries(1)["q1"]
    options = draw.options(0.3, stem=("english",), stop=STOPS)
    call.tried("rankeval.text.lead", doc, draw.integer(0, 40))
    call.tried("rankeval.text.key_sentences", doc, draw.integer(0, 4), **options)
    call.tried(
        "rankeval.text.snippets", doc, query, draw.integer(1, 25), draw.integer(1, 3), **options
    )
    call(
        "rankeval.text.Snippet",
        draw.integer(0, 5),
        draw.integer(4, 9),
        **draw.options(0.5, marks=(((1, 3),),)),
    )


def file_of_texts(draw: Draw, texts: dict[str, str]) -> tuple[str, str]:
    """Return a name of a file, and texts in one of the formats."""
    form = draw.integer(0, 4)
    if form == 0:
        return "t.tsv", "".join(f"{name}\t{text}\n" for name, text in texts.items())
    if form == 1:
        lines = [{"_id": name, "title": text[:9], "text": text} for name, text in texts.items()]
        return "t.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines)
    if form == 2:
        return "t.txt", "".join(
            f"<DOC>\n<DOCNO> {name} </DOCNO>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
            for name, text in texts.items()
        )
    if form == 3:
        return "topics", "".join(
            f"<top>\n<num> Number: {at}\n<title> {text}\n\n"
            f"<desc> Description:\n{text[::-1]}\n</top>\n\n"
            for at, text in enumerate(texts.values(), 301)
        )
    return "cran", "".join(
        f".I {at}\n.T\nA title\n.W\n{text}\n" for at, text in enumerate(texts.values(), 1)
    )


@recipe("text", 240)
def read(draw: Draw, call: Call) -> None:
    """Read files of texts; some are damaged."""
    name, text = file_of_texts(draw, draw.documents(draw.integer(1, 5)))
    content = text.encode()
    path = draw.write(name, mutated(content, draw.rng) if draw.happens(0.3) else content)
    formats = (
        None,
        None,
        "tsv",
        "jsonl",
        "trec_documents",
        "trec_topics",
        "cranfield",
        "xml_topics",
        "odd",
    )
    options = draw.options(
        0.4,
        format=formats,
        fields=("text", ("title", "text"), "desc", "none"),
        ids=("order", "written"),
    )
    call("rankeval.text.read_texts", path, **options)


@recipe("text", 30, timed=True)
def profiled(draw: Draw, call: Call) -> None:
    """Time searches; the times are masked, the queries and the notes are not."""
    model = call.make("rankeval.text.BM25")
    model.fit(draw.documents())
    search: Any = draw.choice((model, len, {"bm25": model, "plain": len}))
    options = draw.options(0.4, confidence_level=(0.9,))
    if not isinstance(search, dict):
        options |= draw.options(
            0.4, name=("bm25",), index_seconds=(1.5,), index_bytes=(1000,), cost=(0.01,)
        )
    found = call.make(
        "rankeval.profile",
        search,
        draw.queries(),
        repeats=draw.integer(1, 2),
        warmup=draw.integer(0, 1),
        **options,
    )
    profiles = found if isinstance(found, dict) else {"one": found}
    for name, profile in profiles.items():
        columns = [
            list(profile.table.columns),
            [str(label) for label in profile.table.index],
            profile.notes,
            profile.repeats,
        ]
        call.keep(name, [columns, list(profile.per_query.columns), list(profile.per_query.index)])


@recipe("text", 60)
def retrieved(draw: Draw, call: Call) -> None:
    """Ask searches; the seconds are left out."""
    model = call.make("rankeval.text.BM25")
    model.fit(draw.documents())
    search = draw.choice(
        (model, str.split, lambda text: {"d1": len(text)}, lambda text: [text, text])
    )
    options = draw.options(
        0.4, k=(1, 3, 100), n_jobs=(2,), name=("bm25",), retries=(0,), timeout=(60,)
    )
    run = call.make("rankeval.retrieve", search, draw.queries(), **options)
    call.keep("run", [run.to_frame(), run.notes, dict(run.failed), sorted(run.seconds)])


def known_profile(draw: Draw, call: Call, **options: Any) -> Any:
    """Return a profile whose times are known."""
    timed = call.make("rankeval.profile", len, draw.queries(), repeats=1, warmup=0)
    table, per_query = timed.table.copy(), timed.per_query.copy()
    for frame in (table, per_query):
        for name in frame.select_dtypes("number"):
            frame[name] = [round(1 + at / 7, 3) for at in range(len(frame))]
    return call.make("rankeval.Profile", table, per_query, **options)


@recipe("text", 60)
def profile_by_hand(draw: Draw, call: Call) -> None:
    """Make a profile of times that are known, print and plot it."""
    options = draw.options(0.6, name=("bm25",), repeats=(3,), notes=(("note",),))
    made = known_profile(draw, call, **options)
    call.keep("profile", made)
    call.plain(made, "Profile.to_latex", "Profile.to_markdown", "Profile.plot")
