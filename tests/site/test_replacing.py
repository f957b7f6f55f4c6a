"""A site replaces an earlier one file by file, and touches nothing that is not its own."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pytest
from projects import Page, evaluated, promotion, run_page, three, write

import rankeval as rk
from rankeval.errors import InvalidInput, UnknownName
from rankeval.shelf.record import Record
from rankeval.site import publishing, write_site


@pytest.fixture
def home(tmp_path):
    three(tmp_path / "saved")
    return tmp_path / "saved"


def content(public):
    return {path.relative_to(public).as_posix(): path.read_bytes() for path in public.rglob("*") if path.is_file()}


def test_the_same_runs_give_the_same_files(home, tmp_path):
    public = tmp_path / "public"
    write_site(home, public)
    before, times = content(public), {path: path.stat().st_mtime_ns for path in public.rglob("*.html")}
    write_site(home, public)
    assert content(public) == before
    assert {path: path.stat().st_mtime_ns for path in public.rglob("*.html")} == times


def test_comparisons_of_scores_that_did_not_change_are_not_made_again(home, tmp_path, monkeypatch):
    public = tmp_path / "public"
    write_site(home, public)
    monkeypatch.setattr(publishing, "figures_of", lambda *_, **__: pytest.fail("compared again"))
    write_site(home, public)
    monkeypatch.undo()
    rk.save(evaluated("new", 0.4), home / "new", role="test", data="letor")
    write_site(home, public)
    assert b"new</strong></bdi> has the best mean" in (public / "index.html").read_bytes()


def test_comparisons_that_another_version_wrote_are_made_again(home, tmp_path):
    public = tmp_path / "public"
    write_site(home, public)
    before, file = content(public), public / "rankeval-site.json"
    manifest = json.loads(file.read_text())
    for text in ("{", '{"against": 1}', '{"against": {"good": {}}}'):
        file.write_text(json.dumps(manifest | {"figures": dict.fromkeys(manifest["figures"], text)}))
        write_site(home, public)
        assert content(public) == before


def test_a_champion_or_query_ids_make_the_comparisons_anew(home, tmp_path):
    public = tmp_path / "public"
    write_site(home, public, queries=True)
    assert b"query-" in (public / "rankeval-site.json").read_bytes()
    write_site(home, public)
    assert not [name for name, file in content(public).items() if b"query-" in file]
    write(home, "promotion", promotion(1, "close"))
    write_site(home, public)
    assert b"against the champion" in run_page(public, "good").read_bytes()


def test_pages_of_runs_that_are_gone_are_removed_if_they_are_ours(home, tmp_path):
    public = tmp_path / "public"
    write_site(home, public)
    poor, close = (run_page(public, name) for name in ("poor", "close"))
    (public / "CNAME").write_text("example.org")
    (public / "runs" / "mine.html").write_text("mine")
    close.write_text("changed by hand")
    for name in ("poor", "close"):
        shutil.rmtree(home / "runs" / name)
    write_site(home, public)
    assert not poor.exists()
    assert close.read_text() == "changed by hand"
    assert (public / "CNAME").read_text() == "example.org"
    assert (public / "runs" / "mine.html").read_text() == "mine"


@pytest.mark.parametrize("name", ["index.html", "notes.txt", ".hidden"])
def test_a_folder_with_foreign_files_is_refused(home, tmp_path, name):
    public = tmp_path / "public"
    public.mkdir()
    (public / name).write_text("mine")
    with pytest.raises(InvalidInput) as refused:
        write_site(home, public)
    assert refused.value.argument == "public"
    assert content(public) == {name: b"mine"}


def test_the_folder_of_the_results_is_refused(home):
    before = content(home)
    with pytest.raises(InvalidInput):
        write_site(home, home)
    assert content(home) == before


def test_a_page_that_another_program_changed_is_not_replaced(home, tmp_path):
    public = tmp_path / "public"
    write_site(home, public)
    (public / "index.html").write_text("mine")
    before = content(public)
    with pytest.raises(InvalidInput) as refused:
        write_site(home, public)
    assert refused.value.argument == "public"
    assert content(public) == before


@pytest.mark.parametrize("path", ["../saved/runs/good/record.json", "/etc/passwd", "runs/../../x", "a\\b"])
def test_a_manifest_of_a_stranger_removes_nothing_elsewhere(home, tmp_path, path):
    public = tmp_path / "public"
    public.mkdir()
    manifest = {"format": "rankeval.site/1", "pages": {path: "0" * 64}, "figures": {}}
    (public / "rankeval-site.json").write_text(json.dumps(manifest))
    before = content(home)
    with pytest.raises(InvalidInput):
        write_site(home, public)
    assert content(home) == before


@pytest.mark.parametrize("text", ["", "[]", '{"format": "rankeval.site/9"}', '{"figures": {"x": {"against": 1}}}'])
def test_a_damaged_manifest_is_refused(home, tmp_path, text):
    public = tmp_path / "public"
    public.mkdir()
    (public / "rankeval-site.json").write_text(text)
    with pytest.raises(InvalidInput) as refused:
        write_site(home, public)
    assert refused.value.argument == "public"


def test_a_link_in_place_of_the_pages_is_refused(home, tmp_path):
    public, elsewhere = tmp_path / "public", tmp_path / "elsewhere"
    write_site(home, public)
    shutil.move(public / "runs", elsewhere)
    (public / "runs").symlink_to(elsewhere)
    before = content(elsewhere)
    rk.save(evaluated("new", 0.4), home / "new", role="test", data="letor")
    with pytest.raises(InvalidInput):
        write_site(home, public)
    assert content(elsewhere) == before


def test_what_is_asked_for_must_be_there(tmp_path, home):
    cases = {
        "a folder and an experiment": {"saved": home, "experiment": "letor"},
        "neither": {"saved": None},
        "no such folder": {"saved": tmp_path / "nowhere"},
        "a file": {"saved": home / "runs" / "good" / "record.json"},
    }
    for title, case in cases.items():
        with pytest.raises(InvalidInput):
            write_site(**case, public=tmp_path / title)
    with pytest.raises(UnknownName):
        write_site(None, tmp_path / "out", experiment="letor", host="ufo")


def test_the_host_of_folders_lists_its_experiment(home, tmp_path):
    shutil.move(home, tmp_path / "letor")
    site = write_site(None, tmp_path / "public", experiment="letor", host="files", uri=str(tmp_path))
    assert site.n_pages == 4


@pytest.mark.parametrize("left", ["nothing", "no result"])
def test_a_folder_without_results_is_refused_and_the_site_stays(home, tmp_path, left):
    public = tmp_path / "public"
    write_site(home, public)
    before = content(public)
    shutil.rmtree(home)
    home.mkdir()
    if left == "no result":
        (home / "notes.txt").write_text("mine")
        write(home, "empty", Record("run", "nothing"))
    with pytest.raises(InvalidInput) as refused:
        write_site(home, public)
    assert refused.value.argument == "saved"
    assert content(public) == before


def test_the_same_results_in_two_places_are_one_row(home, tmp_path):
    """As those of an experiment that a tracker has too; what is left out is counted."""
    shutil.copytree(home, home / "again")
    site = write_site(home, tmp_path / "public")
    page = Page(site.index)
    assert site.n_pages == 4
    assert [row[0] for row in page.rows[1:]] == ["good", "close", "poor"]
    assert "3 runs left out that have the results of another one" in page.text


def test_decisions_on_the_same_comparison_are_no_copies(home, tmp_path):
    """A version may be rejected, and promoted after all."""
    systems = three(home / "more")
    compared = rk.compare({"old": systems["poor"], "new": systems["good"]})
    for number, decision in enumerate(("rejected", "forced")):
        part = {"comparison": compared.record(role="test")}
        write(home, f"promotion {number}", replace(promotion(number, "new", decision), parts=part))
    text = Page(write_site(home, tmp_path / "public").index).text
    assert "rejected: new" in text
    assert "forced: new" in text
    assert "3 runs left out" in text


def test_the_champion_is_found_by_a_copy_of_its_run(home, tmp_path):
    shutil.copytree(home / "runs" / "close", home / "z" / "version run")
    moved = promotion(1, "")
    facts = {"sources": "elsewhere z/version_run"}
    shutil.move(home / "z" / "version run", home / "z" / "version_run")
    write(home, "promotion", replace(moved, facts=facts))
    assert "The champion is close" in Page(write_site(home, tmp_path / "public").index).text


def test_a_date_is_that_of_the_record(home, tmp_path):
    """The time of a file is that of a clone: it is no date, and no order."""
    public = tmp_path / "public"
    write_site(home, public)
    before = content(public)
    assert "Date" not in Page(public / "index.html").text
    for number, file in enumerate(sorted(home.rglob("record.json"))):
        os.utime(file, (1e9 - number * 1e7,) * 2)
    write_site(home, public)
    assert content(public) == before
    write(home, "promotion", promotion(1, "close"))
    assert "2026-09-2" in Page(write_site(home, public).index).text
