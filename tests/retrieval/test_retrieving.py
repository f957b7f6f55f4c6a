"""A search that fails, hangs and is killed: what it answered arrives, and what it did not is named."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pytest
from circles import choose
from tables import each_row

import rankeval as rk
from rankeval.errors import InvalidInput, QueryIdError, RankevalWarning
from rankeval.retrieval import asking
from rankeval.retrieval.searches import search_of

N = 200
QUERIES = {f"q{number:03}": f"text {number}" for number in range(N)}
QRELS = {qid: {f"d{place}": place % 3 for place in range(6)} for qid in QUERIES}


def ranking(text):
    """Six documents in an order of the text, with scores that have many digits."""
    rng = np.random.default_rng(int(text.split()[1]))
    return [(f"d{document}", float(rng.normal())) for document in rng.permutation(6)]


@contextmanager
def served(behaviour, answer=ranking):
    """Serve on loopback; ``behaviour(text, attempt)`` gives a status and headers, or "hang"."""
    attempts, lock, ended = {}, threading.Lock(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            text = urllib.request.unquote(self.path[1:])
            with lock:
                attempts.setdefault(text, []).append(time.monotonic())
                attempt = len(attempts[text])
            does = behaviour(text, attempt)
            if does == "hang":
                ended.wait(20)
                return
            status, headers = does
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            body = json.dumps(answer(text)).encode() if status == 200 else b"no"
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/", attempts=attempts)
    finally:
        ended.set()
        server.shutdown()
        server.server_close()


def asks(url):
    def search(text):
        with urllib.request.urlopen(url + quote(text), timeout=30) as answer:  # noqa: S310 - loopback
            return json.load(answer)

    return search


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)


def drawn(text, attempt):
    """Behave as a server that fails at random, at the same attempts in each run."""
    draw = random.Random(f"{text} {attempt}").random()  # noqa: S311 - no secret
    if draw < 0.02:
        return "hang"
    status = next((status for below, status in ((0.1, 429), (0.2, 503), (0.3, 500)) if draw < below), 200)
    return status, {"Retry-After": "0"} if status in (429, 503) else {}


@pytest.mark.usefixtures("quick")
def test_all_arrive_that_a_failing_server_answers_within_the_retries():
    """The others are named, with the last status; the ranking is that of a server without failures."""
    retries = 2
    lost = {
        qid: drawn(text, retries + 1)
        for qid, text in QUERIES.items()
        if all(drawn(text, attempt)[0] != 200 for attempt in range(1, retries + 2))
    }
    assert lost
    with served(drawn) as server:
        run = rk.retrieve(asks(server.url), QUERIES, n_jobs=8, timeout=3, retries=retries)
    assert run.failed.keys() == lost.keys()
    for qid, last in lost.items():
        assert ("TimeoutError" if last == "hang" else f"HTTP {last[0]}") in run.failed[qid]
        assert "after 3 attempts" in run.failed[qid]
    expected = {qid: ranking(text) for qid, text in QUERIES.items() if qid not in lost}
    assert run.seconds.keys() == expected.keys()
    rows = sorted(map(tuple, run.to_frame().to_numpy().tolist()))
    assert rows == sorted((qid, *pair) for qid, pairs in expected.items() for pair in pairs)
    assert max(map(len, server.attempts.values())) == retries + 1


@pytest.mark.usefixtures("quick")
@each_row("form", ["seconds", "date"])
def test_retry_after_is_obeyed(form):
    """No query is asked before the time that the engine names."""

    def busy(text, attempt):
        after = "1" if form == "seconds" else formatdate(time.time() + 2, usegmt=True)
        return (429, {"Retry-After": after}) if (text, attempt) == ("text 0", 1) else (200, {})

    texts = {"a": "text 0", "b": "text 1"}
    with served(busy) as server:
        run = rk.retrieve(asks(server.url), texts)
    first, again = server.attempts["text 0"]
    assert again - first > 0.9
    assert server.attempts["text 1"][0] - first > 0.9
    assert run.seconds["a"] < 0.9  # the wait is not the engine's time
    assert not run.failed


def test_waits_grow_and_are_drawn_from_a_seed(monkeypatch):
    """Half a second, doubled each time, less up to one half; the same in each call."""
    now, waits = [0.0], []
    clock = SimpleNamespace(monotonic=lambda: now[0], time=time.time)
    monkeypatch.setattr(asking, "time", clock)

    def sleep(timeout):
        waits.append(timeout)
        now[0] += timeout
        raise asking.Empty

    def search(_text):
        raise ConnectionResetError("gone")

    class Done(list):
        put = list.append

        def get(self, timeout):
            return self.pop(0) if self else sleep(timeout)

    monkeypatch.setattr(asking, "SimpleQueue", Done)
    for _ in range(2):
        failed = rk.retrieve(search, {"q": "a"}, retries=4).failed
    assert waits[:4] == pytest.approx(waits[4:])
    assert all(wait / (0.5 * 2**place) <= 1 for place, wait in enumerate(waits[:4]))
    assert all(wait / (0.5 * 2**place) >= 0.5 for place, wait in enumerate(waits[:4]))
    assert failed == {"q": "ConnectionResetError: gone after 5 attempts"}


class _OfRequests(OSError):
    """As an HTTPError of requests: the response has the status and the headers."""

    def __init__(self, status):
        super().__init__(f"{status} Error for https://user:geheim@host/")
        self.response = SimpleNamespace(status_code=status, headers={})


class ConnectTimeout(Exception):
    """As httpx: no class of Python's own."""


@pytest.mark.usefixtures("quick")
@each_row(
    ("error", "n_calls", "words"),
    [
        (_OfRequests(400), 1, "HTTP 400"),
        (_OfRequests(404), 1, "HTTP 404"),
        (_OfRequests(429), 3, "HTTP 429"),
        (_OfRequests(502), 3, "HTTP 502"),
        (urllib.error.HTTPError("http://h", 503, "busy", {}, None), 3, "HTTP 503"),
        (urllib.error.URLError("no host"), 3, "URLError"),
        (ConnectTimeout("slow"), 3, "ConnectTimeout"),
        (TimeoutError("slow"), 3, "TimeoutError"),
    ],
)
def test_only_failures_that_may_pass_are_tried_again(error, n_calls, words):
    """Another status is an answer: the query failed, and the next one is asked."""
    calls = []

    def search(text):
        calls.append(text)
        if text == "bad":
            raise error
        return ["d1"]

    run = rk.retrieve(search, {"q1": "bad", "q2": "good"}, retries=2)
    assert calls.count("bad") == n_calls
    assert run.failed["q1"].startswith(words)
    assert "geheim" not in run.failed["q1"]
    assert run.qid.to_pylist() == ["q2"]
    assert run.notes[-1].startswith("1 query failed ('q1')")


@pytest.mark.usefixtures("quick")
def test_an_engine_that_asks_for_an_hour_is_not_waited_for():
    """The query fails with the wait in its reason, and the others are asked."""

    def search(text):
        if text == "bad":
            raise urllib.error.HTTPError("http://h", 429, "slow down", {"Retry-After": "3600"}, None)
        return ["d1"]

    started = time.monotonic()
    run = rk.retrieve(search, {"q1": "bad", "q2": "good"})
    assert time.monotonic() - started < 30
    assert run.failed["q1"].startswith("HTTP 429, asked to wait 3600 s, ")
    assert {*run.seconds} == {"q2"}


NUMBERED = {
    "k": lambda text, k: text * k,
    "size": lambda text, size: text * size,
    "rows": lambda text, rows=2: text * rows,
    "hits": lambda text, hits: text * hits,
    "topk": lambda text, topk=2: text * topk,
}


@each_row("name", NUMBERED)
def test_the_number_of_documents_goes_to_the_parameter_that_takes_it(name):
    """Needed or with a default; a function of a text and another number is not one of id and text."""
    assert search_of(NUMBERED[name], 3)("q1", "a") == "aaa"


def test_a_function_of_two_arguments_takes_id_and_text_or_is_refused():
    with pytest.raises(InvalidInput) as caught:
        search_of(NUMBERED["size"])
    assert caught.value.remedy == "give k="
    with pytest.raises(InvalidInput) as caught:
        rk.retrieve(lambda text, first: [text] * first, {"q1": "a"})
    assert caught.value.argument == "search"
    assert rk.retrieve(lambda qid, wanted: [qid, wanted], {"q1": "a"}).docid.to_pylist() == ["q1", "a"]


def of_length(n):
    return lambda text: [f"{text}{place}" for place in range(n)]


@each_row(
    ("search", "k", "is_noted"),
    [
        (of_length(10), 100, True),
        (of_length(10), 10, False),
        (of_length(7), 100, False),
        (lambda text, k: of_length(min(k, 10))(text), 100, False),
        (lambda text: of_length(10 if text == "a" else 9)(text), 100, False),
    ],
)
def test_a_limit_of_the_search_itself_is_noted(search, k, is_noted):
    """Nobody could ask it for k documents, so its own ten may be the cut."""
    notes = rk.retrieve(search, {"q1": "a", "q2": "b"}, k=k).notes
    assert any(note.startswith("each answer has 10 documents, perhaps") for note in notes) == is_noted


PARTIAL = {"timed_out": True}, {"_shards": {"failed": 1, "total": 2}}, {"error": {"reason": "busy"}}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("fault", PARTIAL)
def test_a_partial_answer_of_an_engine_is_asked_for_again(fault):
    """It is no ranking; a query that gets no whole one has failed, and the others arrive."""
    whole = {"timed_out": False, "_shards": {"failed": 0}, "hits": {"hits": [{"_id": "d1", "_score": 2.0}]}}
    answers = {"busy at first": [whole | fault, whole], "always busy": [whole | fault] * 3, "quick": [whole]}
    run = rk.retrieve(lambda text: answers[text].pop(0), {text: text for text in answers}, retries=2)
    assert {*run.seconds} == {"busy at first", "quick"}
    assert run.to_frame()["docid"].tolist() == ["d1", "d1"]
    assert {*run.failed} == {"always busy"}
    assert "IncompleteAnswerError" in run.failed["always busy"]
    assert run.failed["always busy"].endswith("after 3 attempts")


@each_row("n_jobs", [1, 4])
def test_an_error_of_the_callers_code_stops_at_once_and_names_the_query(n_jobs):
    """It would be the same at each attempt."""
    calls = []

    def search(text):
        calls.append(text)
        return text + 1

    with pytest.raises(TypeError) as caught:
        rk.retrieve(search, QUERIES, n_jobs=n_jobs, name="bm25")
    assert caught.value.__notes__ == ["rankeval.retrieve searched the query 'q000' by bm25"] or n_jobs > 1
    assert caught.value.__notes__[0].startswith("rankeval.retrieve searched the query 'q00")
    assert len(calls) <= n_jobs


def test_a_hanging_search_is_left_behind():
    """The work goes on, and the end of the program does not wait."""
    code = """
import time, rankeval as rk
def search(text):
    time.sleep(600 if text == "hangs" else 0)
    return ["d1"]
run = rk.retrieve(search, {"q1": "hangs", "q2": "b"}, timeout=0.3, retries=0)
print(run.failed, run.qid.to_pylist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "{'q1': 'TimeoutError: no answer in 0.3 s after 1 attempt'} ['q2']\n"


def test_an_answer_is_asked_once_and_kept(tmp_path):
    """Under the name, k, the id and the text; failures and damaged files are asked again."""
    calls, down = [], {"text 1"}

    def search(text):
        calls.append(text)
        if text in down:
            raise _OfRequests(400)
        return ranking(text)

    texts = {"a": "text 0", "b": "text 1", "c": "text 2"}
    options = {"cache": tmp_path / "new" / "answers", "name": "v1"}
    first = rk.retrieve(search, texts, **options)
    down.clear()
    second = rk.retrieve(search, texts, **options)
    assert calls == ["text 0", "text 1", "text 2", "text 1"]
    assert first.failed.keys() == {"b"}
    assert second.failed == {}
    whole = rk.retrieve(search, texts)
    assert second.to_frame().equals(whole.to_frame())
    assert first.seconds["a"] == second.seconds["a"]
    calls.clear()
    rk.retrieve(search, texts, **options | {"name": "v2"})
    rk.retrieve(search, texts, **options, k=2)
    rk.retrieve(search, texts | {"a": "text 9"}, **options)
    assert calls == [*texts.values(), *texts.values(), "text 9"]
    for file in options["cache"].iterdir():
        file.write_bytes(file.read_bytes()[:50])
    assert rk.retrieve(search, texts, **options).to_frame().equals(whole.to_frame())


_KILLED = """
import os, sys
sys.path[:0] = {path!r}
import test_retrieving as t, rankeval as rk
n = 0
def search(text):
    global n
    n += 1
    if n > {most}:
        os.kill(os.getpid(), 9)
    with open("asked.txt", "a") as file:
        print(text, file=file)
    return t.ranking(text)
rk.retrieve(search, t.QUERIES, cache="answers", name="v1", n_jobs={n_jobs}).write("run.txt")
"""


@each_row("n_jobs", choose(default=[4], complete=[1, 4]))
def test_a_killed_search_goes_on_where_it_was(n_jobs, tmp_path):
    """The run is that of an uninterrupted call, and no answer that was kept is asked again."""
    path = [entry for entry in sys.path if entry] + [str(__file__).rpartition("/")[0]]
    for most, returncode in ((70, -9), (10**6, 0)):
        code = _KILLED.format(path=path, most=most, n_jobs=n_jobs)
        done = subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path, timeout=120)
        assert done.returncode == returncode
    asked = (tmp_path / "asked.txt").read_text().splitlines()
    assert {*asked} == {*QUERIES.values()}
    assert len(asked) <= N + n_jobs
    rk.Run.from_dict({qid: ranking(text) for qid, text in QUERIES.items()}).write(tmp_path / "whole.txt")
    killed, whole = (rk.Run.read(tmp_path / name).to_frame() for name in ("run.txt", "whole.txt"))
    assert killed.equals(whole)


def test_an_interrupt_ends_quickly_and_keeps_the_answers(tmp_path):
    """Ctrl-C comes to the thread that waits."""

    def search(text):
        if text == "text 5":
            raise KeyboardInterrupt
        return ranking(text)

    with pytest.raises(KeyboardInterrupt):
        rk.retrieve(search, QUERIES, cache=tmp_path, name="v1")
    assert len([*tmp_path.iterdir()]) == 5


def test_an_evaluation_of_a_search_is_that_of_its_file(tmp_path):
    """Bit for bit, and the texts reach the guard."""
    measures = ["nDCG@10", "AP", "RR", "P@5"]
    found = rk.evaluate(QRELS, ranking, queries=QUERIES, measures=measures, name="v1")
    rk.retrieve(ranking, QUERIES, name="v1").write(tmp_path / "run.txt")
    read = rk.evaluate(QRELS, tmp_path / "run.txt", measures=measures)
    assert found.scores.tobytes() == read.scores.tobytes()
    assert (found.ranking_digest, found.judgments_digest) == (read.ranking_digest, read.judgments_digest)
    assert (found.name, found.notes) == (read.name, read.notes)
    cut = rk.evaluate(QRELS, ranking, queries=QUERIES, measures=measures, k=2)
    assert cut.facts.query_counts["retrieved"].tolist() == [2] * N


def test_labels_that_are_words_are_graded_before_the_search():
    """As beside a run."""
    qrels = {"q1": {"d1": "Exact", "d2": "Bad"}}
    grades = {"Exact": 2, "Bad": 0}
    found = rk.evaluate(qrels, lambda _: ["d2", "d1"], queries={"q1": "a"}, grades=grades, measures="RR")
    assert found.per_query["RR"].tolist() == [0.5]


def test_queries_without_judgments_and_judged_queries_without_a_text_are_counted():
    """Neither is lost silently."""
    qrels = {"q1": {"d1": 1}, "q2": {"d1": 1}}
    found = rk.evaluate(qrels, lambda _: ["d1"], queries={"q1": "a", "q3": "b"}, measures="RR")
    assert found.per_query["RR"].to_dict() == {"q1": 1.0, "q2": 0.0}
    assert found.excluded == {"no judgments": ("q3",)}
    assert any("1 judged query without a text, never searched: 'q2'" in note for note in found.notes)
    with pytest.raises(QueryIdError) as caught:
        rk.evaluate(qrels, pytest.fail, queries={"1": "a"})
    assert caught.value.argument == "queries"


@each_row(
    ("argument", "options"),
    [
        ("queries", {}),
        ("k", {"ranking": {"q": ["d1"]}, "k": 5}),
        ("k", {"ranking": {"q": ["d1"]}, "k": 5, "queries": {"q": "a"}}),
    ],
)
def test_options_of_a_search_go_with_a_search(argument, options):
    """A depth beside a finished run would be ignored."""
    with pytest.raises(InvalidInput) as caught:
        rk.evaluate({"q": {"d1": 1}}, **{"ranking": str.split} | options)
    assert caught.value.argument == argument


def test_a_wrong_measure_is_refused_before_anything_is_asked():
    """Searches cost money."""
    with pytest.raises(InvalidInput):
        rk.evaluate({"q": {"d1": 1}}, pytest.fail, queries={"q": "a"}, measures="nDGC")


def test_failed_queries_are_never_scored_in_silence(tmp_path):
    """Refused by default; left out and counted when the caller says so; said when the run is written or fused."""

    def search(text):
        if text == "b":
            raise _OfRequests(404)
        return ["d1"] if text == "a" else []

    qrels, texts = {qid: {"d1": 1} for qid in ("q1", "q2", "q3")}, {"q1": "a", "q2": "b", "q3": "c"}
    run = rk.retrieve(search, texts, name="v1")
    for ranked, queries in ((run, None), (search, texts)):
        with pytest.raises(InvalidInput, match="'q2' by HTTP 404") as caught:
            rk.evaluate(qrels, ranked, queries=queries)
        assert caught.value.argument == "ranking"
        assert "missing='skip'" in caught.value.remedy
    left_out = rk.evaluate(qrels, run, missing="skip", measures="RR")
    assert left_out.excluded == {"the search failed": ("q2",), "missing from the run": ("q3",)}
    assert rk.evaluate({"q1": {"d1": 1}}, run, measures="RR").n_queries == 1
    with pytest.raises(InvalidInput, match="'q2'"):
        rk.fuse([run, {"q1": ["d1"]}])
    with pytest.warns(RankevalWarning, match="'q2'"):
        run.write(tmp_path / "run.txt")


@pytest.mark.postgres
def test_two_configurations_of_postgresql_are_compared_over_http(postgres):
    """A real engine behind a server: the stemmed configuration finds inflected words, the plain one does not."""
    import psycopg

    url = postgres.database().replace("+psycopg", "")
    kinds = [f"{colour} {fruit}" for colour in ("red", "green", "ripe") for fruit in ("pear", "apple", "plum", "fig")]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE docs (id text, body text)")
        rows = [(f"d{number}", kind) for number, kind in enumerate(kinds)]
        connection.cursor().executemany("INSERT INTO docs VALUES (%s, %s)", rows)

    def engine(configuration):
        sql = """SELECT id, ts_rank(to_tsvector(%s::regconfig, body), query) AS score
                 FROM docs, plainto_tsquery(%s::regconfig, %s) AS query
                 WHERE to_tsvector(%s::regconfig, body) @@ query ORDER BY score DESC, id"""

        def answer(text):
            given = (configuration, configuration, text, configuration)
            with psycopg.connect(url) as connection:
                return [{"id": name, "score": score} for name, score in connection.execute(sql, given)]

        return answer

    queries = {f"q{number}": f"{kind}s" for number, kind in enumerate(kinds)}
    qrels = {f"q{number}": [f"d{number}"] for number in range(len(kinds))}
    evaluations = {}
    for configuration in ("simple", "english"):
        with served(lambda *_: (200, {}), engine(configuration)) as server:
            evaluations[configuration] = rk.evaluate(qrels, asks(server.url), queries=queries, measures="RR")
    assert {name: found.aggregate()["RR"] for name, found in evaluations.items()} == {"simple": 0.0, "english": 1.0}
    assert "english beats simple" in rk.compare(evaluations, baseline="simple").headline
