"""Records of strangers: hostile names run nothing, damage is a line with its reason, secrets stay out."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import replace

import pytest
from projects import Page, evaluated, promotion, run_page, three, write

import rankeval as rk
from rankeval.shelf.record import Record
from rankeval.site import write_site
from rankeval.tracking import LoggedData

HOSTILE = [
    "<script>alert(1)</script>",
    "javascript:alert(1)",
    "../../../etc/passwd",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)",
    "</script></style></title><img src=x onerror=alert(1)>",
    "\u202e txt.exe \u2066 left open",
    "NUL \x00 and \x1b[2J",
    "{{ 7 * 7 }} {% raw %} <!--",
    "w" * 3_000,
    "https://example.org/<b>",
    "#top",
    "\n \x0b \u2028",
]
ALLOWED = {
    *("lang", "charset", "name", "content", "http-equiv", "class", "href", "role", "aria-label", "tabindex", "scope"),
    *("data-v", "viewbox", "aria-hidden", "d", "cx", "cy", "r"),
}
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "header", "nav", "h1", "h2", "h3", "p", "a", "strong", "span"),
    *("div", "table", "thead", "tbody", "tr", "th", "td", "svg", "path", "circle", "script", "ul", "li", "dl", "dt"),
    *("dd", "code", "bdi", "details", "summary"),
}
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CANARY = "canary5f3a"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "saved"


def hostile_project(home):
    """Save evaluations, promotions and records of foreign kinds with hostile texts in each place."""
    for place, text in enumerate(HOSTILE):
        many = {f"{text}{number}": text for number in range(60)}
        evaluation = replace(evaluated("x", 0.5 + place / 20), name=text)
        data = LoggedData(text, "sha256:00", "test", 1, 1, text)
        record = evaluation.record(role="test", data=data, note=text)
        write(home, f"evaluation {place}", replace(record, name=text, headline=text, params={**many}))
        numbers = dict.fromkeys(many, float("nan"))
        children = {text: Record(text, text)}
        more = {"notes": (text,) * 60, "tags": many, "children": children, "data": (data,) * 50}
        write(home, f"foreign {place}", Record(text, text, text, many, numbers, **more))
        moved = promotion(place, text)
        write(home, f"promotion {place}", replace(moved, params={**moved.params, "model": text, "alias": text}))


def test_hostile_texts_run_nothing_and_steer_nothing(home, tmp_path):
    hostile_project(home)
    public = tmp_path / "public"
    site = write_site(home, public, queries=True)
    assert (site.faults, site.n_pages) == ((), 1 + 3 * len(HOSTILE))
    assert "Against the best" in Page(site.index).text
    failures = []
    for path in public.rglob("*.html"):
        page = Page(path)
        text = path.read_text("utf-8")
        policy = re.search('http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
        is_index = path.name == "index.html"
        if not (page.tags <= TAGS and page.attributes <= ALLOWED and not UNSEEN.search(text)):
            failures.append((path.name, page.tags - TAGS, page.attributes - ALLOWED))
        if not policy.startswith("default-src 'none'") or ("sha256-" in policy) != is_index:
            failures.append((path.name, policy))
        if ("script" in page.tags) != is_index or not all((path.parent / link).is_file() for link in page.links):
            failures.append((path.name, page.links))
    assert failures == []


def test_half_a_letter_in_a_record_is_a_fault(home, tmp_path):
    for place, record in enumerate((evaluated("HALF").record(role="test"), Record("ufo", "HALF", "HALF"))):
        file = write(home, f"{place}", record) / "record.json"
        file.write_text(file.read_text("utf-8").replace("HALF", r"\ud800"), "utf-8")
    site = write_site(home, tmp_path / "public")
    assert len(site.faults) + site.n_pages == 3
    assert not UNSEEN.search(site.index.read_text("utf-8"))


def test_every_page_of_a_run_is_light(home, tmp_path):
    hostile_project(home)
    evaluation = evaluated("many", measures=[f"nDCG@{cutoff}" for cutoff in range(1, 200)])
    rk.save(evaluation, home / "many", role="test", note="\u202e" * 5000)
    public = tmp_path / "public"
    write_site(home, public, queries=True)
    sizes = {path.name: path.stat().st_size for path in (public / "runs").iterdir()}
    assert max(sizes.values()) <= 25_000


def test_a_page_says_how_much_it_leaves_out(home, tmp_path):
    write(home, "foreign", Record("ufo", "ufo", params={f"setting {number}": 1.0 for number in range(100)}))
    public = tmp_path / "public"
    write_site(home, public)
    (page,) = (public / "runs").iterdir()
    text = Page(page).text
    left = int(re.search(r"(\d+) more settings are in the record", text)[1])
    assert len(re.findall(r"setting \d+", text)) == 100 - left


def test_secrets_are_in_no_file(home, tmp_path):
    address = f"postgresql://me:{CANARY}@host/db?password={CANARY}"
    params = {"api_key": CANARY, "secret_key": CANARY, "uri": address, "url": f"https://{CANARY}@host/?token={CANARY}"}
    record = Record("ufo", f"See {address}", f"Read from {address}", params=params, notes=(address,))
    write(home, "foreign", record)
    rk.save(evaluated("a"), home / "a", note=address)
    public = tmp_path / "public"
    write_site(home, public, queries=True)
    assert not [path for path in public.rglob("*") if path.is_file() and CANARY in path.read_text("utf-8")]


def damaged(home, how):
    """Damage a saved evaluation; return what its reason must say."""
    where = home / "runs" / "poor"
    content = (where / "record.json").read_text("utf-8")
    if how == "altered":
        (where / "evaluation.parquet").write_bytes(b"altered")
        return "altered or replaced"
    if how == "missing":
        (where / "evaluation.parquet").unlink()
        return "no file 'evaluation.parquet'"
    if how == "truncated":
        (where / "record.json").write_text(content[:200], "utf-8")
        return "is not a record"
    if how == "version":
        (where / "record.json").write_text(content.replace("rankeval.record/1", "rankeval.record/9"), "utf-8")
        return "rankeval.record/9"
    if how == "deep":
        (where / "record.json").write_text("[" * 100_000, "utf-8")
        return "is not a record"
    facts = json.loads(content)
    facts["facts"] |= {"measures": ["a"]}
    (where / "record.json").write_text(json.dumps(facts), "utf-8")
    return "facts of an evaluation: measures"


@pytest.mark.parametrize("how", ["altered", "missing", "truncated", "version", "deep", "facts"])
def test_a_damaged_folder_is_a_line_and_not_the_end(home, tmp_path, how):
    three(home)
    reason = damaged(home, how)
    site = write_site(home, tmp_path / "public")
    (fault,) = site.faults
    assert fault.place == "runs/poor"
    assert reason in fault.reason
    page = Page(site.index)
    assert reason.replace("'", "") in page.text.replace("'", "")
    assert [row[0] for row in page.rows[1:3]] == ["good", "close"]


def test_a_folder_that_cannot_be_opened_is_a_line(home, tmp_path, monkeypatch):
    three(home)
    scandir = os.scandir

    def refused(path):
        if str(path).endswith("poor"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    site = write_site(home, tmp_path / "public")
    assert [fault.place for fault in site.faults] == ["runs/poor"]


def test_a_foreign_kind_is_listed(home, tmp_path):
    write(home, "ufo", Record("ufo", "seen", "It flew."))
    page = Page(write_site(home, tmp_path / "public").index)
    assert "Other results" in page.text
    assert page.rows[1] == ["seen", "Ufo", "It flew."]


def test_a_report_is_linked_where_it_is(home, tmp_path):
    """The link is relative, and quoted: a folder may be named like an address."""
    three(home)
    odd = home / "runs" / "javascript:alert(1)"
    shutil.move(home / "runs" / "good", odd)
    (odd / "report.html").write_text("<p>report</p>", "utf-8")
    public = tmp_path / "deep" / "public"
    write_site(home, public)
    (href,) = {
        link for path in (public / "runs").iterdir() for link in Page(path).links if link.endswith("report.html")
    }
    assert href == "../../../saved/runs/javascript%3Aalert%281%29/report.html"


def test_a_number_of_a_stranger_is_no_date(home, tmp_path):
    for place, started in enumerate((1e300, -1.0, float("nan"), float("inf"))):
        write(home, f"{place}", replace(promotion(place, "a"), started=None))
        file = home / f"{place}" / "record.json"
        dated = f'"started": {json.dumps(started)}'
        file.write_text(file.read_text("utf-8").replace('"started": null', dated), "utf-8")
    site = write_site(home, tmp_path / "public")
    assert (site.faults, site.n_pages) == ((), 5)


def test_a_long_reason_is_whole_on_its_own_page(home, tmp_path):
    """A promotion's page has no keys of metrics, and no p of 0."""
    reason = "It is better, since " + "and ".join(f"cause {number} " for number in range(60))
    metrics = {"difference/nDCG_at_10": 0.1, "difference/nDCG_at_10_p_adjusted": 0.0}
    record = replace(promotion(1, "a"), facts={"decision": "accepted", "reason": reason}, metrics=metrics)
    write(home, "promotion", replace(record, headline=f"accepted: {reason}"))
    site = write_site(home, tmp_path / "public")
    text = Page(run_page(site.index.parent, "shop v1: accepted")).text
    assert "cause 59" in text
    assert "difference, nDCG@10, adjusted p< 0.0001" in text
    assert "_at_" not in text


def test_absolute_paths_are_in_no_file(home, tmp_path):
    places = [f"/home/{CANARY}/ledger", rf"C:\Users\{CANARY}\ledger", f"sqlite:////srv/{CANARY}/m.db", f"'/{CANARY}/x'"]
    for number, place in enumerate(places):
        rk.save(evaluated(f"system {number}"), home / f"{number}", note=f"Guard: plan a; ledger {place}.")
        write(home, f"foreign {number}", Record("ufo", "ufo", f"See {place}.", params={"uri": place}))
    public = tmp_path / "public"
    pages = [path.read_text("utf-8") for path in write_site(home, public, queries=True).index.parent.rglob("*.html")]
    assert not [page for page in pages if CANARY in page]
    assert any("ledger ledger" in page for page in pages)


def test_a_run_without_results_is_counted_and_left_out(home, tmp_path):
    three(home)
    write(home, "empty", Record("run", "nothing", params={"a": 1.0}))
    site = write_site(home, tmp_path / "public")
    assert site.n_pages == 4
    assert "1 run left out without results" in Page(site.index).text
