"""A folder is as its seal says, or it is refused: altered files, paths that lead elsewhere, and what is no record."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest
from shelf.every_kind import results

import rankeval as rk
from rankeval.errors import FileFormatError, InvalidInput
from rankeval.shelf import folder as folders

FORMS = ["evaluation by name and slices", "comparison", "cross-validation", "cross-validations", "agreement", "ab_test"]
EMPTY = {
    "format": "rankeval.record/1",
    "kind": "novelty",
    **dict.fromkeys(("name", "headline", "text", "status"), ""),
    **{name: {} for name in ("params", "metrics", "series", "facts", "tags")},
    **{name: [] for name in ("notes", "data", "resources", "parts", "children")},
    **dict.fromkeys(("started", "seconds")),
}
FILE = {"bytes": 1, "hash": "sha256:00"}
HOSTILE = ["../x", "/etc/passwd", "C:\\x", "a\\b", "a/../../x", "..", ".", "", "a//b", "a\0b", "a\nb", "./a", "a/. /b"]
HOSTILE += ["x" * 300, "/".join(["x" * 200] * 6), "\N{RIGHT-TO-LEFT OVERRIDE}a"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the folders of some forms of results, by their titles."""
    folder = tmp_path_factory.mktemp("whole")
    for title in FORMS:
        result, options = results()[title]
        rk.save(result, folder / title, **options)
    return folder


def put(folder: Path, content: dict | bytes) -> str:
    """Write a record.json as anybody may; return its seal."""
    folder.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (folder / "record.json").write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def named(folder: Path, within: str = "") -> list[str]:
    """Return the paths of all files that a record names, with those of its parts and their records."""
    told = json.loads((folder / within / "record.json").read_bytes())
    parts = [f"{within}{part['path']}/" for part in (*told["parts"], *told["children"])]
    own = [f"{within}{one['path']}" for one in told["resources"]]
    return [*own, *(f"{part}record.json" for part in parts), *(path for part in parts for path in named(folder, part))]


@pytest.mark.parametrize("title", FORMS)
def test_one_flipped_byte_of_any_named_file_is_refused_and_the_file_is_named(title, whole, tmp_path):
    shutil.copytree(whole / title, tmp_path / "x")
    paths = named(tmp_path / "x")
    assert paths
    for path in paths:
        file = tmp_path / "x" / path
        content = file.read_bytes()
        place = len(content) // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(FileFormatError, match="was altered or replaced") as refused:
            rk.load(tmp_path / "x")
        parent, _, name = path.rpartition("/")
        inner = path.rpartition("tables/") if "tables/" in path else path.rpartition("evaluations/")
        short = f"{inner[1]}{inner[2]}" if inner[1] else name
        assert short in str(refused.value), path
        assert name != "record.json" or parent in str(refused.value), path
        file.unlink()
        with pytest.raises(FileFormatError, match="there is no file"):
            rk.load(tmp_path / "x")
        file.write_bytes(content)
    assert str(rk.load(tmp_path / "x")) == str(results()[title][0])


def test_a_record_reads_no_file_before_it_is_asked_for(whole, tmp_path):
    """A list of a thousand results reads a thousand record.json."""
    shutil.copytree(whole / "comparison", tmp_path / "x")
    shutil.rmtree(tmp_path / "x" / "evaluations")
    record = rk.read_record(tmp_path / "x")
    assert record.headline == results()["comparison"][0].headline
    assert "evaluations/bm25.parquet" in record.files
    with pytest.raises(FileFormatError, match=r"there is no file 'evaluations/bm25\.parquet'"):
        record.files["evaluations/bm25.parquet"]


@pytest.mark.parametrize("title", FORMS)
def test_views_may_go_and_strangers_may_add_files(title, whole, tmp_path):
    shutil.copytree(whole / title, tmp_path / "x")
    for readme in [*(tmp_path / "x").rglob("README.md")]:
        readme.unlink()
    (tmp_path / "x" / "notes.txt").write_text("mine")
    (tmp_path / "x" / "parts" / "other").mkdir(parents=True)
    result, options = results()[title]
    assert str(rk.load(tmp_path / "x")) == str(result)
    assert rk.save(result, tmp_path / "x", **options) == rk.save(result, tmp_path / "y", **options)
    assert (tmp_path / "x" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("kind", ["resources", "parts", "children"])
@pytest.mark.parametrize("path", HOSTILE)
def test_paths_that_lead_elsewhere_are_refused_before_anything_is_opened(kind, path, tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    seal = put(tmp_path / "folder" / "good", EMPTY)
    good = {"name": "good", "path": "good", "hash": f"sha256:{seal}"}
    told = {**EMPTY, "parts": [good]}
    put(tmp_path / "folder", {**told, kind: [*told[kind], {"name": "bad", "path": path, **FILE}]})
    opened = []

    def watched(self, *given, **options):
        opened.append(self.name)
        return real(self, *given, **options)

    real = Path.open
    monkeypatch.setattr(Path, "open", watched)
    with pytest.raises(FileFormatError, match="the path of a file"):
        rk.read_record(tmp_path / "folder")
    assert opened == ["record.json"]


@pytest.mark.parametrize("path", HOSTILE)
def test_no_record_is_written_to_such_a_path(path, tmp_path):
    with pytest.raises(InvalidInput):
        folders.write(rk.Record("x", files={path: b""}), tmp_path / "x")
    assert not any(tmp_path.iterdir())


def test_a_small_folder_cannot_hold_a_part_very_many_times(tmp_path):
    """One path named twice at each of thirty levels would be a thousand million parts; so would two links."""
    seal = put(tmp_path / "twice" / "a", EMPTY)
    part = {"path": "a", "hash": f"sha256:{seal}"}
    put(tmp_path / "twice", {**EMPTY, "children": [{"name": "1", **part}, {"name": "2", **part}]})
    with pytest.raises(FileFormatError, match="names one path twice"):
        rk.read_record(tmp_path / "twice")
    put(tmp_path / "linked" / "a", EMPTY)
    (tmp_path / "linked" / "b").symlink_to("a")
    both = [{"name": name, "path": name, "hash": f"sha256:{seal}"} for name in "ab"]
    put(tmp_path / "linked", {**EMPTY, "children": both})
    with pytest.raises(FileFormatError, match=r"linked/b: there is no file 'record\.json'|'b/record\.json'"):
        rk.read_record(tmp_path / "linked")


def test_a_link_to_a_whole_folder_or_to_a_file_is_as_good_as_it(whole, tmp_path):
    """As data version control leaves them; the hash says what is behind."""
    shutil.copytree(whole / "comparison", tmp_path / "x")
    (tmp_path / "latest").symlink_to("x")
    file = tmp_path / "x" / "comparison.json"
    file.rename(tmp_path / "blob")
    file.symlink_to(tmp_path / "blob")
    assert str(rk.load(tmp_path / "latest")) == str(results()["comparison"][0])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_the_place_of_a_file_is_no_file(whole, tmp_path):
    """Opening it would wait for ever."""
    shutil.copytree(whole / "agreement", tmp_path / "x")
    (tmp_path / "x" / "tables" / "table.parquet").unlink()
    os.mkfifo(tmp_path / "x" / "tables" / "table.parquet")
    with pytest.raises(FileFormatError, match=r"there is no file 'tables/table\.parquet'"):
        rk.load(tmp_path / "x")


def test_parts_within_parts_end_somewhere(tmp_path):
    seal, depth = "", 450
    for level in range(depth):
        tmp_path.joinpath(*["a"] * level, "a").mkdir()
    for level in reversed(range(depth)):
        part = [{"name": "a", "path": "a", "hash": f"sha256:{seal}"}] if seal else []
        seal = put(tmp_path.joinpath(*["a"] * level), {**EMPTY, "parts": part})
    with pytest.raises(FileFormatError, match="its parts are nested too deeply"):
        rk.read_record(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({**EMPTY, "format": "rankeval.record/2"}, "'rankeval.record/2'.*the version that wrote it"),
        ({**EMPTY, "format": "rankeval.manifest/1"}, "reads 'rankeval.record/1'; restore"),
        ({**EMPTY, "format": 1}, "has the format 1"),
        ({"format": "rankeval.record/1"}, "is not a whole record: kind"),
        ({**EMPTY, "metrics": {"AP": "high"}}, r"metrics\.AP"),
        ({**EMPTY, "metrics": [1]}, "metrics"),
        ({**EMPTY, "series": {"AP": [[0.5, 1]]}}, r"series\.AP\.0\.0"),
        ({**EMPTY, "data": [{"name": 1}]}, r"data\.0\.name"),
        ({**EMPTY, "parts": [{"name": "a", "path": "a"}]}, r"parts\.0\.hash"),
        ({**EMPTY, "notes": "a"}, "notes"),
        ({**EMPTY, "resources": [{"path": "a", **FILE}, {"path": "a", **FILE}]}, "names one path twice"),
        (b" " * (4 << 20) + json.dumps(EMPTY).encode(), "has more than 4,194,304 bytes"),
        (b'{"format": "rankeval.record/1", "facts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is not a record"),
        (b'{"format": ' + b"1" * 5_000 + b"}", "is not a record"),
        (b"[]", "is not a record"),
        (b"null", "is not a record"),
        (b"\xff\xfe\x00", "is not a record"),
        (b"", "is not a record"),
    ],
)
def test_what_is_no_record_is_one_clear_error(content, says, tmp_path):
    put(tmp_path, content)
    with pytest.raises(FileFormatError, match=says) as refused:
        rk.read_record(tmp_path)
    text = str(refused.value)
    assert text.startswith(str(tmp_path))
    assert "\n" not in text
    assert len(text) < 500 + len(str(tmp_path))
    with pytest.raises(FileFormatError):
        rk.load(tmp_path)


@pytest.mark.parametrize("kind", ["evaluation", "comparison", "cross-validation", "cross-validations", "agreement"])
def test_facts_that_are_not_those_of_the_kind_are_refused(kind, tmp_path):
    put(tmp_path, {**EMPTY, "kind": kind, "facts": {"colour": "red"}})
    assert rk.read_record(tmp_path).facts == {"colour": "red"}
    says = "a CrossValidation for each name" if kind.endswith("s") else f"the record is none of kind '{kind}'"
    with pytest.raises(InvalidInput, match=says):
        rk.load(tmp_path)


def test_a_file_that_fits_its_hash_and_is_no_table_is_refused(tmp_path):
    content = b"no Parquet"
    (tmp_path / "t.parquet").write_bytes(content)
    told = {"path": "t.parquet", "bytes": 10, "hash": f"sha256:{hashlib.sha256(content).hexdigest()}", "table": "table"}
    put(tmp_path, {**EMPTY, "kind": "perplexity", "facts": {"model": "pbm"}, "resources": [told]})
    with pytest.raises(FileFormatError, match="the record is none of kind 'perplexity'"):
        rk.load(tmp_path)


def test_keys_that_a_later_version_adds_are_passed_over(tmp_path):
    put(tmp_path, {**EMPTY, "colour": "red", "resources": []})
    assert rk.read_record(tmp_path).kind == "novelty"


@pytest.mark.parametrize("place", ["nothing", "file", "empty", "x" * 300])
def test_a_place_without_a_record_is_named(place, tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match=rf"{place}' has no record: there is no record\.json"):
        rk.load(tmp_path / place)
