"""The workflow of the guide keeps one comment on a pull request: its step runs against an imitation of GitHub's API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

GUIDE = Path(__file__).resolve().parents[2] / "examples" / "guides" / "relevance_tests.md"
TOKEN = "ghs_a-secret-of-this-test"  # noqa: S105 - it opens nothing
BOT, PERSON = {"login": "github-actions[bot]", "type": "Bot"}, {"login": "somebody", "type": "User"}
MARKER = "<!-- rankeval -->"
SUMMARY = "### rankeval\n\n**1 of 2 checks failed** `$(touch ran)` \"quoted\" '$HOME' é ∞\n"
NAMES = {"github.token": TOKEN, "github.event.pull_request.number": "7", "github.event.pull_request.head.sha": "abc123"}


class Hub:
    """Comments of pull request 7 of o/r, as the API of GitHub gives them: thirty on a page, or fewer if asked for."""

    def __init__(self):
        self.comments, self.requests, self.refuse = [], [], {}
        self.most = 30
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                self.send(*hub.answer(self.command, urlsplit(self.path), self.headers, self.body()))

            do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the names of the base class

            def body(self):
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def send(self, status, content):
                data = json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                """Keep the requests of a test off the terminal."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v3"  # as on GitHub Enterprise

    def answer(self, method, url, headers, body):
        self.requests.append((method, url.path))
        if headers["Authorization"] != f"Bearer {TOKEN}":
            return 401, {"message": "Bad credentials"}
        if method in self.refuse:
            return self.refuse[method], {"message": "Resource not accessible by integration"}
        thread, one = "/api/v3/repos/o/r/issues/7/comments", "/api/v3/repos/o/r/issues/comments/"
        if (method, url.path) == ("GET", thread):
            query = {name: int(values[0]) for name, values in parse_qs(url.query).items()}
            size = min(query.get("per_page", 30), self.most)
            start = size * (query.get("page", 1) - 1)
            return 200, self.comments[start : start + size]
        if (method, url.path) == ("POST", thread):
            return 201, self.add(BOT, json.loads(body)["body"])
        found = [each for each in self.comments if url.path == f"{one}{each['id']}"]
        if method == "PATCH" and found:
            found[0]["body"] = json.loads(body)["body"]
            return 200, found[0]
        return 404, {"message": "Not Found"}

    def add(self, user, body):
        self.comments.append({"id": 1000 + len(self.comments), "user": user, "body": body})
        return self.comments[-1]


@pytest.fixture
def hub():
    made = Hub()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def workflow():
    """Return the workflow as the guide has it."""
    text = GUIDE.read_text(encoding="utf-8")
    return yaml.safe_load(re.search(r"^```yaml relevance\.yml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1])


@pytest.fixture
def run(workflow, hub, tmp_path):
    """Return a function that runs a step as a runner does, in the folder of the test."""
    steps = {step.get("name"): step for step in workflow["jobs"]["relevance"]["steps"]}

    def run_step(name="Comment", **environment):
        given = {
            key: re.sub(r"\$\{\{ (.*?) \}\}", lambda found: NAMES[found[1]], value)
            for key, value in steps[name].get("env", {}).items()
        }
        ours = {"GITHUB_API_URL": hub.url, "GITHUB_REPOSITORY": "o/r", "GITHUB_STEP_SUMMARY": str(tmp_path / "step.md")}
        base = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]), "no_proxy": "*"}
        script = tmp_path / "step.sh"
        script.write_text(steps[name]["run"], encoding="utf-8")
        return subprocess.run(
            ["bash", "-e", str(script)],
            cwd=tmp_path,
            env={**base, **ours, **given, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    (tmp_path / "rankeval-summary.md").write_text(SUMMARY, encoding="utf-8")
    return run_step


def passed(done, said=""):
    """Assert that a step ended well, said this much, and never the token."""
    assert (done.returncode, TOKEN in done.stdout) == (0, False), done.stdout
    assert (said in done.stdout) if said else not done.stdout
    return True


def ours(hub):
    return [each for each in hub.comments if each["user"] == BOT and each["body"].startswith(MARKER)]


def test_the_first_run_posts_and_the_next_ones_update_the_same_comment(run, hub, tmp_path):
    hub.add(PERSON, "Looks good")
    assert passed(run())
    assert [each["body"] for each in ours(hub)] == [f"{MARKER}\n{SUMMARY}\n\nCommit abc123\n"]
    (tmp_path / "rankeval-summary.md").write_text("### rankeval\n\nof the next commit\n")
    assert passed(run())
    assert passed(run())
    assert [each["body"] for each in ours(hub)] == [
        f"{MARKER}\n### rankeval\n\nof the next commit\n\n\nCommit abc123\n"
    ]
    assert [method for method, _ in hub.requests if method != "GET"] == ["POST", "PATCH", "PATCH"]
    assert len(hub.comments) == 2
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("most", [7, *(pytest.param(size, marks=pytest.mark.rest) for size in (30, 100))])
def test_the_comment_is_found_on_a_later_page_among_others_that_have_the_marker(run, hub, most):
    """Of a person who quotes it, of another program, of ours without it at its beginning; some without user or body."""
    hub.most = most
    hub.add(PERSON, f"{MARKER}\na copy")
    hub.add(PERSON, f"> {MARKER}\n> a quotation")
    hub.add({"login": "other[bot]", "type": "Bot"}, f"{MARKER}\nof another program")
    hub.add(BOT, f"of another workflow, which quotes {MARKER}")
    hub.add(None, None)
    for k in range(120):
        hub.add(PERSON, f"comment {k}")
    mine = hub.add(BOT, f"{MARKER}\nof the last commit")
    others = [dict(each) for each in hub.comments if each is not mine]
    assert passed(run())
    assert mine["body"] == f"{MARKER}\n{SUMMARY}\n\nCommit abc123\n"
    assert [each for each in hub.comments if each is not mine] == others
    assert [method for method, _ in hub.requests if method != "GET"] == ["PATCH"]


@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("GET", 500),
        ("POST", 403),
        ("PATCH", 404),
        *(
            pytest.param(method, status, marks=pytest.mark.rest)
            for method in ("GET", "POST", "PATCH")
            for status in (403, 404, 500)
            if (method, status) not in {("GET", 500), ("POST", 403), ("PATCH", 404)}
        ),
    ],
)
def test_a_refused_request_is_a_notice_and_no_failure(run, hub, method, status):
    """As with the token of a fork's pull request, which may read alone."""
    if method == "PATCH":
        hub.add(BOT, MARKER)
    before, hub.refuse = [dict(each) for each in hub.comments], {method: status}
    assert passed(run(), f"::notice title=No comment on the pull request::HTTP Error {status}: ")
    assert hub.comments == before


def test_no_network_no_summary_and_a_strange_answer_are_a_notice_too(run, hub, tmp_path):
    hub.server.shutdown()
    hub.server.server_close()
    assert passed(run(), "::notice title=No comment on the pull request::")
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as portal:
        threading.Thread(target=portal.serve_forever, args=(0.01,), daemon=True).start()
        assert passed(run(GITHUB_API_URL=f"http://127.0.0.1:{portal.server_port}"), "::notice title=")
        portal.shutdown()
    (tmp_path / "rankeval-summary.md").unlink()  # pytest ended before it wrote one
    assert passed(run(), "::notice title=")


class Portal(BaseHTTPRequestHandler):
    """Answers each request with a page to sign in, as some networks do."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>Sign in")

    def log_message(self, *_):
        """Keep the requests of a test off the terminal."""


def test_a_module_of_the_repository_is_not_imported_beside_the_token(run, hub, tmp_path):
    """A file `json.py` of a pull request would run with the token in its environment."""
    for name in ("json.py", "os.py", "sitecustomize.py"):
        (tmp_path / name).write_text("open('ran', 'w').close()\nraise SystemExit(3)\n")
    assert passed(run(PYTHONPATH=str(tmp_path)))
    assert len(ours(hub)) == 1
    assert not (tmp_path / "ran").exists()


def test_a_long_summary_is_cut_to_the_length_of_a_comment(run, hub, tmp_path):
    (tmp_path / "rankeval-summary.md").write_text("é" * 200_000, encoding="utf-8")
    assert passed(run())
    assert 60_000 < len(ours(hub)[0]["body"]) <= 65_536


@pytest.mark.further
def test_the_step_of_pytest_feeds_the_comment_and_stays_when_none_can_be_posted(run, hub, tmp_path, installed_plugin):
    """A failing check fails its own step; the step summary has what the comment would have had."""
    (tmp_path / "test_relevance.py").write_text(
        "import pandas as pd\nimport rankeval as rk\n\ndef test_release():\n"
        "    old = pd.DataFrame({'AP': [0.5, 0.6, 0.7]}, index=['q1', 'q2', '<b>'])\n"
        "    rk.testing.assert_evaluations_equal(old.assign(AP=0.5), old)\n"
    )
    (tmp_path / "rankeval-summary.md").unlink()
    hub.refuse = {"POST": 403}
    root = GUIDE.parents[2]
    path = os.pathsep.join(map(str, (installed_plugin, root, root / "integrations")))
    tested = run("Test", PYTHONPATH=path, PYTEST_ADDOPTS="-p no:randomly -p no:cacheprovider")
    assert tested.returncode == 1, tested.stdout
    assert passed(run(), "::notice title=No comment on the pull request::HTTP Error 403: ")
    summary = (tmp_path / "rankeval-summary.md").read_text(encoding="utf-8")
    assert "**1 of 1 check failed**; pytest: 1 test failed." in summary
    assert "&lt;b&gt;" in summary
    assert (tmp_path / "step.md").read_text(encoding="utf-8") == f"\n{summary}"
    hub.refuse = {}
    assert passed(run())
    assert ours(hub)[0]["body"] == f"{MARKER}\n{summary}\n\nCommit abc123\n"


def test_the_workflow_gives_the_token_to_one_step_and_to_no_code_of_a_fork(workflow):
    """The event gives a fork's code a token that reads; no text of a pull request stands in a script."""
    assert workflow[True] == ["pull_request"]  # `on` is YAML's word for true
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    job = workflow["jobs"]["relevance"]
    *before, last = job["steps"]
    assert last["if"] == "always() && github.event_name == 'pull_request'"
    assert last["continue-on-error"] is True
    assert before[0]["with"]["persist-credentials"] is False
    assert "github.token" not in json.dumps([before, {**job, "steps": []}])
    assert not any("${{" in step.get("run", "") for step in job["steps"])
    assert [step["uses"].partition("/")[0] for step in job["steps"] if "uses" in step] == ["actions", "actions"]
