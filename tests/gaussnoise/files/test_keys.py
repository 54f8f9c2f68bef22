"""No reader takes a JSON object that has a key twice: others might take the other value."""

import hashlib
import json
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import CertificateError, OutputError, StreamError
from gaussnoise.files.disk import parsed

pytestmark = pytest.mark.usefixtures("quick_pictures")

PEOPLE = pa.table({"sex": ["F", "M", "F"] * 400})
SCHEMA, RHO = gn.Schema([gn.Attribute("sex", ["F", "M"])]), gn.zCDP(0.1)


def doubled(text, key):
    """The same JSON for Python's reader, which keeps the last of two equal keys."""
    assert f'"{key}":' in text
    return text.replace(f'"{key}":', f'"{key}": 0, "{key}":', 1)


def double(path, key):
    path.write_text(doubled(path.read_text(encoding="utf-8"), key), encoding="utf-8")


def test_a_key_twice_is_refused_at_any_depth():
    for text in ('{"a": 1, "a": 1}', '[[{"b": {"a": 1, "b": 2, "a": 3}}]]', '{"a":1,"\\u0061":2}'):
        with pytest.raises(ValueError, match="a key twice"):
            parsed(text)
    text = '{"a": [{"a": 1}, {"a": 2}], "b": {"a": null}}'
    assert parsed(text) == json.loads(text)


@pytest.mark.parametrize("key", ["rho", "sigma", "files", "multiplier"])
def test_of_a_release(tmp_path, key):
    gn.plan(SCHEMA, 1, RHO).release(PEOPLE, out=tmp_path / "out")
    gn.TableRelease.load(tmp_path / "out")
    double(tmp_path / "out" / "release.json", key)
    with pytest.raises(OutputError, match="load: "):
        gn.TableRelease.load(tmp_path / "out")


def test_of_a_row_in_json_lines(tmp_path):
    gn.plan(SCHEMA, 1, RHO).release(PEOPLE, out=tmp_path / "out", format="jsonl")
    file, place = tmp_path / "out/tables/1-sex.jsonl", tmp_path / "out/release.json"
    double(file, "estimate")
    record = json.loads(place.read_text(encoding="utf-8"))
    record["files"]["tables/1-sex.jsonl"] = hashlib.sha256(file.read_bytes()).hexdigest()
    place.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(OutputError, match="load: "):
        gn.TableRelease.load(tmp_path / "out")


def test_of_a_stream_and_of_its_tick(tmp_path):
    stream = gn.plan(SCHEMA, 1, RHO, over=gn.streams.Ticks(2)).start(tmp_path / "stream")
    stream.tick(PEOPLE, number=1)
    double(tmp_path / "stream/ticks/0001/release.json", "tick")
    with pytest.raises(StreamError):
        dict(gn.streams.Stream.open(tmp_path / "stream").tables.period(1).tables)
    double(tmp_path / "stream/stream.json", "sigma")
    with pytest.raises(OutputError, match="is not a stream"):
        gn.streams.Stream.open(tmp_path / "stream")


def test_of_the_header_of_a_saved_answer(tmp_path):
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)))
    noise.save(tmp_path / "noise.npz")
    arrays = dict(np.load(tmp_path / "noise.npz"))
    for name, change in (("same", str), ("twice", lambda text: doubled(str(text), "gamma"))):
        path = tmp_path / f"{name}.npz"
        np.savez(path, **arrays | {"header": np.array(change(arrays["header"]))})
        assert zipfile.is_zipfile(path)
    gn.OptimalNoise.load(tmp_path / "same.npz")
    with pytest.raises(CertificateError):
        gn.OptimalNoise.load(tmp_path / "twice.npz")
