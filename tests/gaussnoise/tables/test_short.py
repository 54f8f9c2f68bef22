"""Short text is looked up by its bytes: the same codes as through a dictionary."""

import random

import pyarrow as pa
import pytest

from gaussnoise.tables.reading.short import short_texts

TEXTS = {
    "one byte": ["1", "x", " ", "\0", "~"],
    "two bytes": ["10", "é", "x\0", "\0x", "\0\0", "  "],
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("dtype", [pa.string(), pa.large_string()])
def test_each_text_has_its_own_code(kind, dtype):
    codes = {text: 2**40 + k for k, text in enumerate(TEXTS[kind])}
    texts = random.Random(0).choices(list(codes), k=500)
    values, calls = pa.array(texts, dtype), []

    def find(text):
        calls.append(text)
        return codes[text]

    wanted = [codes[text] for text in texts]
    assert short_texts(values, find).tolist() == wanted
    assert sorted(calls) == sorted(codes)
    assert short_texts(values[7:90], find).tolist() == wanted[7:90]  # with an offset
    pieces = pa.chunked_array([values[:3], values[3:]])
    assert short_texts(pieces, find).tolist() == wanted


@pytest.mark.parametrize(
    "texts", [["1", None], ["1", "10", ""], ["1", "10"], ["100"], [""], [], ["x", "é"], [None]]
)
def test_other_text_is_left_to_a_dictionary(texts):
    values = pa.array(texts, pa.string())
    assert short_texts(values, len) is None
    assert short_texts(pa.chunked_array([pa.array(["1"]), values]), len) is None
    assert short_texts(pa.chunked_array([], pa.string()), len) is None


def test_numbers_and_bytes_are_not_text():
    assert short_texts(pa.array([1, 2]), lambda _: 1) is None
    assert short_texts(pa.array([b"1", b"2"]), lambda _: 1) is None


def test_text_that_is_no_utf8_is_no_category():
    damaged = pa.array([b"\xff", b"x"]).view(pa.string())
    assert short_texts(damaged, lambda text: {"x": 5}.get(text, 0)).tolist() == [0, 5]
