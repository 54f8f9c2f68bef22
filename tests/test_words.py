"""Docstrings, comments and messages use plain words and the field's terms."""

import re
import tokenize
from pathlib import Path

import domains
import gaussnoise

SOURCES = [
    source
    for package in (domains, gaussnoise)
    for source in sorted(Path(package.__file__).parent.rglob("*.py"))
]

# words that a reader whose English is a second language reads twice
HARD = re.compile(
    r"\b(whoever|nobody|whatever|anybody|everybody|somebody|whichever|whomever)\b", re.IGNORECASE
)
# what files hold already, and stays as it is
STORED = (
    "Whoever sees the release knows exactly how many rows",
    "whatever {data}",
    "it protects nobody",
)


def hard_words(source):
    """The lines of a file whose comments or texts have such a word, by number."""
    with tokenize.open(source) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT, *FSTRING):
                text = token.string
                for stored in STORED:
                    text = text.replace(stored, "")
                if HARD.search(text):
                    yield token.start[0]


FSTRING = tuple(
    getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)
)  # from Python 3.12 on


def test_no_comment_or_text_has_a_word_that_is_read_twice():
    assert len(SOURCES) > 100
    assert not {str(source): found for source in SOURCES if (found := list(hard_words(source)))}


def test_such_words_are_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('x = 1  # for nobody\n"""Whatever it is."""\ny = "plain"\n', encoding="utf-8")
    assert list(hard_words(path)) == [1, 2]
