"""Ways to change a published folder, and what the verifier finds wrong with it."""

import hashlib
import json
import re
import shutil

from gaussnoise import verifier


def fault(folder, **program):
    """What the verifier finds wrong, or None."""
    lines = verifier.verified(folder, **program)
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


def anew(path, content):
    """Write a file that may exist. Some file systems wait for the disk when one is emptied."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


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
        anew(self.at / name, f"{text}\n".encode())

    def write(self, name, content, folder="."):
        """Write a file with its digest, as one does who changes a folder with care."""
        anew(self.at / folder / name, content)
        record = self.read(f"{folder}/release.json")
        record["files"][name] = hashlib.sha256(content).hexdigest()
        self.write_record(record, f"{folder}/release.json")

    def restore(self):
        for path in self.at.rglob("*"):
            if path.is_file() and path not in self.original:
                path.unlink()
        for path, content in self.original.items():
            if not path.exists() or path.read_bytes() != content:
                anew(path, content)


def tables_of(copy, folder):
    """The names of the tables in a folder with a record."""
    record = copy.read(f"{folder}/release.json")
    listed = ("marginals",) if "marginals" in record else ("period", "cumulative")
    return [
        f"{'' if what == 'marginals' else what + '/'}{entry['file']}"
        for what in listed
        for entry in record[what]
    ]


def of_a_number(copy, rng, folder="."):
    """A number of a table with another digit."""
    name = rng.choice(tables_of(copy, folder))
    lines = (copy.at / folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    k = rng.randrange(1, len(lines))
    cells = lines[k].rstrip("\n").split(",")
    place = rng.randrange(len(cells) - 4, len(cells))
    before = cells[place]
    while float(cells[place]) == float(before):
        cells[place] = changed_digit(before, rng)
    lines[k] = ",".join(cells) + "\n"
    copy.write(name, "".join(lines).encode(), folder)
    return f"{folder}/{name} row {k}: {before} became {cells[place]}"


def of_a_shifted_cell(copy, rng, folder=".", names=None):
    """A cell moved with its interval, as an honest program would have written it."""
    name = rng.choice(names or tables_of(copy, folder))
    lines = (copy.at / folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
    k = rng.randrange(1, len(lines))
    cells = lines[k].rstrip("\n").split(",")
    estimate, deviation = map(float, cells[-4:-2])
    estimate += rng.uniform(-5, 5)
    half = 1.959963984540054 * deviation
    cells[-4:] = map(repr, (estimate, deviation, estimate - half, estimate + half))
    lines[k] = ",".join(cells) + "\n"
    copy.write(name, "".join(lines).encode(), folder)
    return f"{folder}/{name} row {k}"


def unnoticed(copy, rng, changes):
    """The changes after which the verifier finds nothing wrong."""
    passed = []
    for change in changes:
        what = change(copy, rng)
        if fault(copy.at) is None:
            passed.append(what)
        copy.restore()
    return passed
