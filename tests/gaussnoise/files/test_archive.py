"""Untrusted files: every reader refuses them with a typed error, before it takes much memory."""

import io
import json
import math
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.errors import CertificateError, OutputError
from gaussnoise.files import archive as _archive

MOST = 2**26  # most bytes that refusing a file may take
LOADS = {"noise": gn.OptimalNoise.load, "local": gn.LocalMechanism.load}
MADE = {
    "noise": gn.gamma(gn.FiniteSet(np.eye(3))),
    "local": gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(1.0)),
}
every_reader = pytest.mark.parametrize("reader", LOADS)


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array))
    return buffer.getvalue()


def claimed(shape, descr="<f8", data=b""):
    """An array with this header, but other data."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": descr, "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + data


def write(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members:
            with file.open(name, "w", force_zip64=True) as member:
                for part in content if isinstance(content, list) else [content]:
                    member.write(part)


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.fixture(params=LOADS)
def stored(request, tmp_path):
    MADE[request.param].save(tmp_path / "stored.npz")
    return request.param, tmp_path / "stored.npz"


def refused(reader, path):
    """The error's words, and the most memory that Python and numpy held."""
    tracemalloc.start()
    try:
        with pytest.raises((CertificateError, OutputError)) as caught:
            LOADS[reader](path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST
    assert (
        caught.value.__context__ is None
        or caught.value.__suppress_context__
        or isinstance(caught.value.__context__, gn.GaussNoiseError)
    )
    return str(caught.value)


def test_a_small_file_of_large_arrays_takes_little_memory(stored):
    """The file has three hundred megabytes of zeros in three hundred kilobytes."""
    reader, path = stored
    zeros = [claimed((300, 2**17))] + [bytes(2**20)] * 300
    write(
        path,
        [*((k, v) for k, v in members(path).items() if k != "factor.npy"), ("factor.npy", zeros)],
    )
    assert path.stat().st_size < 4e5
    assert "MB for a file of this size" in refused(reader, path)


def test_many_small_bombs_are_added_up(stored):
    reader, path = stored
    zeros = [claimed((2**21,)), bytes(2**24)]
    write(path, [*members(path).items(), *((f"cell_weights{k}.npy", zeros) for k in range(20))])
    assert "MB for a file of this size" in refused(reader, path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("factor.npy", claimed((2**40, 3))),
        ("factor.npy", claimed((-1, 3), data=bytes(24))),
        ("factor.npy", claimed((3, 3), data=bytes(71))),
        ("factor.npy", claimed((3, 3), data=bytes(73))),
        ("factor.npy", claimed((10**30,), "<U0")),
        ("factor.npy", claimed((3, 3), "|O", pickle.dumps(np.eye(3)))),
        ("factor.npy", claimed((3, 3), "<U2", bytes(72))),
        ("factor.npy", claimed((3, 3), [("a", "<f8")], bytes(72))),
        ("factor.npy", claimed((3,), ("<f8", (3,)), bytes(72))),
        ("factor.npy", claimed((3, 3), "<M8[D]", bytes(72))),
        ("factor.npy", npy(np.eye(3, dtype=complex))),
        ("factor.npy", npy(np.eye(3, dtype=int))),
        ("factor.npy", npy(np.full((3, 3), math.nan))),
        ("factor.npy", npy(np.zeros((3, 3)))),
        ("factor.npy", npy(np.eye(3)) + b"more"),
        ("factor.npy", b""),
        ("factor.npy", b"\x93NUMPY\x09\x00" + bytes(99)),
        ("factor.npy", b"\x93NUMPY\x01\x00\x0a\x00" + b"(" * 10),
        ("factor.npy", b"\x93NUMPY\x02\x00\x10\x27\x00\x00" + b"(" * 10_000),
        ("factor.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 100),
        ("factor.npy", b"\x80\x04K\x01."),
        ("header.npy", npy("[" * 100_000)),
        ("header.npy", npy('{"format": ' * 100_000)),
        ("header.npy", npy("[]")),
        ("header.npy", npy("7")),
        ("header.npy", npy("")),
        ("header.npy", npy("1" * 5000)),
        ("header.npy", npy(["{}", "{}"])),
        ("header.npy", npy(b"{}")),
        ("header.npy", npy(7.0)),
    ],
)
def test_damaged_members_are_refused(stored, name, content):
    reader, path = stored
    write(path, (members(path) | {name: content}).items())
    refused(reader, path)


def test_deep_descriptions_are_refused(stored):
    """The domains are nested deeper than Python's recursion limit."""
    reader, path = stored
    parts = members(path)
    header = json.loads(str(np.load(io.BytesIO(parts["header.npy"]))))
    deep = '{"type": "Translate", "fields": {"shift": 1.0, "body": ' * 20_000 + "7" + "}}" * 20_000
    text = json.dumps(header | {"domain": "here"}).replace('"here"', deep)
    write(path, (parts | {"header.npy": npy(text)}).items())
    refused(reader, path)


def test_a_name_counts_once(stored):
    reader, path = stored
    content = members(path)
    with pytest.warns(UserWarning, match="Duplicate name"):
        write(path, [*content.items(), ("factor.npy", content["factor.npy"])])
    assert "every name once" in refused(reader, path)


@pytest.mark.parametrize("name", ["factor", "header", "../factor.npy.txt", "folder/"])
def test_only_arrays_are_expected(stored, name):
    reader, path = stored
    write(path, [*members(path).items(), (name, npy(np.eye(3)))])
    assert "nothing else" in refused(reader, path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(stored, compression):
    reader, path = stored
    write(path, members(path).items(), compression)
    assert "stored or deflated" in refused(reader, path)


def test_truncated_files_are_refused(stored):
    reader, path = stored
    content = path.read_bytes()
    for length in range(0, len(content), 331):
        path.write_bytes(content[:length])
        refused(reader, path)


def test_locked_members_are_refused(stored):
    reader, path = stored
    content = bytearray(path.read_bytes())
    place = content.rindex(b"PK\x01\x02")
    content[place + 8] |= 1
    path.write_bytes(content)
    refused(reader, path)


def test_large_files_are_read_again(tmp_path, monkeypatch):
    """Zeros that would compress as much as an attack's are stored uncompressed."""
    monkeypatch.setattr(_archive, "_UNPACKED", 2**16)
    noise = gn.gamma(gn.LpBall(200, 2))
    noise.save(tmp_path / "noise.npz")
    assert (tmp_path / "noise.npz").stat().st_size > 200 * 200 * 8
    np.testing.assert_array_equal(gn.OptimalNoise.load(tmp_path / "noise.npz").center, noise.center)


def test_a_center_of_nothing_takes_no_room(tmp_path):
    """One zero stands for 2^28 of them."""
    noise = gn.optimal_noise(gn.Marginals((2**14, 2**14), [(0, 1)]))
    noise.save(tmp_path / "noise.npz")
    assert (tmp_path / "noise.npz").stat().st_size < 10_000
    assert gn.OptimalNoise.load(tmp_path / "noise.npz").center.shape == (2**28,)


def test_files_with_a_center_of_zeros_are_still_read(tmp_path):
    noise = gn.optimal_noise(gn.Marginals((2, 3), [(0, 1)]))
    noise.save(tmp_path / "noise.npz")
    write(
        tmp_path / "noise.npz",
        (members(tmp_path / "noise.npz") | {"center.npy": npy(np.zeros(6))}).items(),
    )
    assert float(gn.OptimalNoise.load(tmp_path / "noise.npz")) == float(noise)


@every_reader
def test_readers_do_not_take_each_others_files(reader, tmp_path):
    for name, made in MADE.items():
        made.save(tmp_path / name)
        if name == reader:
            LOADS[reader](tmp_path / name)
        else:
            assert "expected a header of format" in refused(reader, tmp_path / name)
