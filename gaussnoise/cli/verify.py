"""The commands about a published folder: ``verify``, and ``sign``."""

from pathlib import Path
from typing import Annotated
from zipfile import is_zipfile

import typer

from .. import signing
from ..errors import OutputError
from ..files.disk import SIGNATURE
from ..verifier import verdict, verified
from .console import ERR, say, show
from .documents import written_document
from .options import Json, Published
from .patience import patience

_STYLES = {"checked": "green", "unchecked": "yellow", "UNKNOWN:": "yellow", "FAILED:": "red"}


def verify_folder(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a release, a stream, a combination or changes; or a saved answer."
        ),
    ],
    releases: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Of changes: the folders of both releases, if they do not lie beside them."
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", help="Ed25519 public key: check also that its owner signed all."),
    ] = None,
) -> None:
    """Check a published folder, or a saved answer, by its own files, in exact arithmetic.

    It needs no data. With --key, check also that the owner of this key signed every file. Take the
    key from the publisher, never from the folder.
    """
    if not folder.exists():
        raise OutputError(
            f"verify: expected a published folder or a saved answer, got {folder}, which does not "
            "exist; hint: the folder that --out named"
        )
    if releases and len(releases) != 2:
        raise OutputError(
            f"verify: expected changes and the folders of both releases, got {len(releases)} more "
            "paths than one; hint: gaussnoise verify CHANGES JANUARY JUNE"
        )
    if folder.is_file() and not is_zipfile(folder):
        raise OutputError(
            f"verify: expected a published folder or a saved answer, got the file {folder}, which "
            "is neither; hint: the folder that --out named, or the .npz file of optimize"
        )
    lines = verified(folder, *(releases or ()))
    if lines[0].endswith("too many points"):
        lines = _in_balls(folder, lines)
    if key is not None:
        lines.append(_signature_line(folder, key))
    elif (folder / SIGNATURE).exists():
        lines.append(f"unchecked  {SIGNATURE}: who signed; --key PUBLIC checks it")
    for line in lines:
        say(line, style=_STYLES[line.split()[0]])
    said = verdict(lines)
    say(said, style="red" if said.startswith("NOT") else "green")
    if any(line.startswith(("FAILED", "UNKNOWN")) for line in lines):
        raise typer.Exit(1)


def _in_balls(answer: Path, lines: list[str]) -> list[str]:
    """Return lines on a check by ball arithmetic of an answer too large for integers."""
    try:
        from .balls import Balls
    except ModuleNotFoundError:
        return [f'{lines[0]}; hint: pip install "gaussnoise[verify]", which checks more of them']
    with patience(ERR, "checking"):
        return verified(answer, answer=Balls)


def _signature_line(folder: Path, key: Path) -> str:
    """Check a folder's signature with the public key, and return a line on the result."""
    try:
        return f"checked    the signature of all files, by the key {signing.verify(folder, key)}"
    except OutputError as error:
        return f"FAILED: {error}"


def sign_folder(
    folder: Published,
    key: Annotated[
        Path,
        typer.Option(
            "--key",
            help="Ed25519 private key, outside the folder: of openssl genpkey -algorithm ed25519, "
            "or ssh-keygen -t ed25519. Its password is asked for.",
        ),
    ],
    as_json: Json = False,
) -> None:
    """Sign all files of a published folder. Other tools can read the new signature.json.

    For a stream, this signs all ticks so far, but never the folder private: sign again after the
    next tick. Combined releases and changes are signed like a release.
    """

    def asked() -> str:
        return typer.prompt(f"password of {key}", hide_input=True, err=True)

    name = signing.sign(folder, key, asked)
    if as_json:
        return show(written_document(folder / SIGNATURE, key=name))
    say(f"wrote {folder / SIGNATURE}: all files are signed by the key {name}")
    if (folder / "stream.json").is_file():
        say("the folder private is not signed; sign again after the next tick, for all ticks")
    say(
        f"gaussnoise verify {folder} --key PUBLIC checks it, as do tools that read in-toto and DSSE"
    )
