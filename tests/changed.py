"""Ways to change a published folder, and what the verifier finds wrong with it."""

import hashlib
import json
import re
import shutil

from gaussnoise import verifier


def fault(folder):
    """What the verifier finds wrong, or None."""
    lines = verifier.verified(folder)
    return lines[0] if lines[0].startswith(("FAILED", "UNKNOWN")) else None


def leaves(value, path=""):
    """All texts and numbers of a record, with where they are."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        if isinstance(one, dict | list):
            yield from leaves(one, f"{path}/{key}")
        else:
            yield f"{path}/{key}", value, key


def changed_digit(text, rng, places=10):
    """A text with one of its first significant digits changed."""
    digits = [m.start() for m in re.finditer(r"\d", text.partition("e")[0])]
    while len(digits) > 1 and text[digits[0]] == "0":
        del digits[0]
    place = rng.choice(digits[:places])
    return (
        text[:place] + rng.choice([d for d in "0123456789" if d != text[place]]) + text[place + 1 :]
    )


def changed(value, rng):
    """Another value of a leaf of a record."""
    if isinstance(value, bool) or value is None:
        return {True: False, False: True, None: "id"}[value]
    if isinstance(value, int):
        return int(changed_digit(str(value), rng, 99))
    if isinstance(value, float):
        other = value
        while other == value:
            other = float(changed_digit(repr(value), rng))
        return other
    if re.fullmatch(r"[\d.]+", value):
        return changed_digit(value, rng)
    place = rng.randrange(len(value)) if value else 0
    other = rng.choice([c for c in "xyz?" if c != value[place : place + 1]])
    return value[:place] + other + value[place + 1 :]


class Copy:
    """A folder that is changed and restored."""

    def __init__(self, folder, at):
        shutil.rmtree(at, ignore_errors=True)
        shutil.copytree(folder, at)
        self.at, self.original = at, {p: p.read_bytes() for p in at.rglob("*") if p.is_file()}

    def read(self, name="release.json"):
        return json.loads((self.at / name).read_text(encoding="utf-8"))

    record = property(read)

    def write_record(self, record, name="release.json"):
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (self.at / name).write_text(text + "\n", encoding="utf-8")

    def write(self, name, content, folder="."):
        """Write a file with its digest, as one does who changes a folder with care."""
        (self.at / folder / name).write_bytes(content)
        record = self.read(f"{folder}/release.json")
        record["files"][name] = hashlib.sha256(content).hexdigest()
        self.write_record(record, f"{folder}/release.json")

    def restore(self):
        for path in self.at.rglob("*"):
            if path.is_file() and path not in self.original:
                path.unlink()
        for path, content in self.original.items():
            if not path.exists() or path.read_bytes() != content:
                path.write_bytes(content)
