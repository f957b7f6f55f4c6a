"""A record of the spool that was damaged is one line that names the file, and is not sent."""

from __future__ import annotations

import json

import pytest
from fuzz.kinds import record_text

from rankeval.errors import TrackingError
from rankeval_mlflow.delivery.spool import PendingUpload, read_payload


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe{}",
        b'{"format": 99}',
        record_text()[:-20],
        record_text().replace(b'"nodes"', b'"knots"'),
        record_text().replace(b'"experiment_name"', b'"experiment\\nname"'),
        json.dumps({**json.loads(record_text()), "target": 3}).encode(),
        json.dumps({**json.loads(record_text()), "nodes": {"0": {}}}).encode(),
    ],
)
def test_a_damaged_record_is_named(tmp_path, content):
    (tmp_path / "record.json").write_bytes(record_text())
    assert read_payload(PendingUpload(tmp_path)).root.name == "n"
    (tmp_path / "record.json").write_bytes(content)
    with pytest.raises(TrackingError, match=r"^[^\n]*record\.json[^\n]*$"):
        read_payload(PendingUpload(tmp_path))


@pytest.mark.parametrize("content", [b"{", b"3", b"\xff"])
def test_a_damaged_memory_of_what_was_sent_is_named(tmp_path, content):
    (tmp_path / "sent.json").write_bytes(content)
    with pytest.raises(TrackingError, match=r"sent\.json"):
        PendingUpload(tmp_path).sent()
