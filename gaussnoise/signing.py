"""Signatures of published folders, which prove who published the files.

``sign`` writes ``signature.json`` into a folder, and ``verify`` checks it with a public key. The
file is a DSSE envelope (https://github.com/secure-systems-lab/dsse) around an in-toto statement
(https://in-toto.io/Statement/v1) with the sha256 of every other file, so that other tools read it.
The folder ``private`` of a stream is never signed, since it is not published.
"""

import base64
import binascii
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import NotAvailableError, OutputError, ParameterError
from .files.disk import (
    MALFORMED,
    RECORD,
    RECORDS,
    SIGNATURE,
    file_digest,
    files_in,
    folder_fault,
    opened,
    parsed,
    read_json,
    remove,
    sync,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

__all__ = ["sign", "verify"]

Password = str | Callable[[], str]

_PAYLOAD = "application/vnd.in-toto+json"
_STATEMENT = "https://in-toto.io/Statement/v1"
_PREDICATE = "urn:gaussnoise:published-folder:1"
_MOST_KEY = 2**16  # most bytes of a key's file
_MOST_JSON = 2**27  # most bytes of a record or an envelope; a stream's is long
_STREAM = "stream.json"
_TICK = re.compile(r"ticks/[0-9]+/")
_PRIVATE = "private/"  # exact counts, which are never signed


def sign(
    folder: str | os.PathLike[str], key: str | os.PathLike[str], password: Password | None = None
) -> str:
    """Sign all files of a published folder, and write the signature to its ``signature.json``.

    The files must be as they were published: their sha256 are compared with the folder's record
    first. Signing again with the same key changes nothing; another key adds its signature. The
    record does not list ``signature.json``, which is written after it; all readers accept the file.

    For a stream, its record and all ticks so far are signed, never its folder ``private``. After
    the next tick, sign again: the new signature covers all ticks. It removes the signatures of
    other keys, which cover fewer ticks; the owners of those keys must sign again.

    Args:
        folder: the folder of a release, of combined releases, of changes, of a stream, or of one of
            its ticks, for readers who receive that tick only.
        key: the file of an Ed25519 private key, in PEM as ``openssl genpkey -algorithm ed25519``
            writes it, or as ``ssh-keygen -t ed25519`` does. It stays outside the folder.
        password: the password of the key's file, or a function that asks for it; it is called only
            if the file has a password.

    Returns:
        The name of the key in the signature: the sha256 of its public part (DER), in hexadecimal.

    Raises:
        NotAvailableError: ``cryptography`` is not installed; the message says how to install it.
        ParameterError: no Ed25519 private key, a missing or wrong password, or a key that is inside
            the folder and would be published with it.
        OutputError: the folder is not a published one, was changed, has a signature of other files,
            or cannot be written.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from cryptography.hazmat.primitives.serialization import (
    ...     Encoding,
    ...     NoEncryption,
    ...     PrivateFormat,
    ...     PublicFormat,
    ... )
    >>> from gaussnoise import signing
    >>> import pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400})
    >>> key, words = Ed25519PrivateKey.generate(), PublicFormat.SubjectPublicKeyInfo
    >>> with tempfile.TemporaryDirectory() as place:
    ...     secret, public = Path(f"{place}/key.pem"), Path(f"{place}/public.pem")
    ...     form = PrivateFormat.PKCS8
    ...     _ = secret.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
    ...     _ = public.write_bytes(key.public_key().public_bytes(Encoding.PEM, words))
    ...     release = gn.plan(schema, 1, gn.zCDP(0.1)).release(people, out=f"{place}/out")
    ...     name = signing.sign(f"{place}/out", secret)
    ...     signing.verify(f"{place}/out", public) == name
    True
    """
    place = Path(folder)
    private = _private_key(Path(key), password)
    if Path(os.path.realpath(key)).is_relative_to(os.path.realpath(place)):
        raise ParameterError(
            f"sign: expected a private key outside {place}, got {os.fspath(key)}: it would be "
            "published with the folder; hint: move it away, and make a new one if the folder was "
            "published"
        )
    payload, target = _statement(place), place / SIGNATURE
    others: list[Any] = []
    if os.path.lexists(target):
        stated, others = _envelope(target)
        if stated != payload:
            _check_continued(target, stated, payload)
            others = []
    name = _name(private.public_key())
    signature = {"keyid": name, "sig": _text(private.sign(_encoded(payload)))}
    if signature not in others:
        signatures = [*(own for own in others if own.get("keyid") != name), signature]
        _replace(
            target, {"payloadType": _PAYLOAD, "payload": _text(payload), "signatures": signatures}
        )
    return name


def verify(folder: str | os.PathLike[str], key: str | os.PathLike[str]) -> str:
    """Check that the owner of a key signed exactly the files that are in a folder now.

    For a stream, these are all files except the folder ``private`` and the signatures of ticks.

    A signature proves who published the files, not that they are true: ``load`` and
    :mod:`gaussnoise.verifier` check that the files agree with each other. The public key must come
    from its owner, and not with the folder.

    Args:
        folder: a folder with a ``signature.json``.
        key: the file of an Ed25519 public key, in PEM or as ``ssh-keygen`` writes it.

    Returns:
        The name of the key: the sha256 of its DER, in hexadecimal.

    Raises:
        NotAvailableError: ``cryptography`` is not installed; the message says how to install it.
        ParameterError: no Ed25519 public key.
        OutputError: there is no signature of this key; a file was changed, added or removed since;
            or a stream has later ticks, and the message says which are signed.

    The example of :func:`sign` checks its signature.
    """
    place = Path(folder)
    public = _public_key(Path(key))
    from cryptography.exceptions import InvalidSignature

    payload, signatures = _envelope(place / SIGNATURE)
    for own in signatures:
        try:
            public.verify(base64.b64decode(own["sig"], validate=True), _encoded(payload))
        except (InvalidSignature, *MALFORMED):
            continue
        break
    else:
        raise OutputError(
            f"verify: {place / SIGNATURE} has no signature of the key {os.fspath(key)}; hint: the "
            "public key of the publisher, from the publisher"
        )
    try:
        fault, new = _changes(_subjects(payload), _digests(place))
    except OutputError:
        raise
    except (OSError, *MALFORMED) as error:
        raise _unreadable(place, error) from None
    if fault is not None:
        raise OutputError(f"verify: in {place}, {fault}; hint: the folder as it was signed")
    if new:
        raise OutputError(
            f"verify: in {place}, ticks were published after it was signed: {len(new)}, from "
            f"{new[0]} on; all before are signed by the key {_name(public)}; hint: its owner signs "
            f"all by gaussnoise sign {place} --key KEY"
        )
    return _name(public)


def _statement(place: Path) -> bytes:
    """Check a folder; return the text to sign: an in-toto statement of all files' sha256."""
    try:
        record = next((name for name in RECORDS if (place / name).is_file()), None)
        if record is None:
            raise OutputError(
                "sign: expected a published folder, with release.json, stream.json or "
                f"changes.json, got {place}"
            )
        content = read_json(place / record, _MOST_JSON)
        if record == _STREAM:
            fault = _stream_fault(place, content["stream"])
        else:
            fault = folder_fault(place, content["files"], every=True, record=record)
        digests = _digests(place)
        statement = {
            "_type": _STATEMENT,
            "subject": [{"name": name, "digest": {"sha256": d}} for name, d in digests.items()],
            "predicateType": _PREDICATE,
            "predicate": {"record": record, "format": str(content["format"])},
        }
    except OutputError:
        raise
    except (OSError, *MALFORMED) as error:
        raise _unreadable(place, error) from None
    if fault is not None:
        raise OutputError(f"sign: in {place}, {fault}; hint: the folder as it was written")
    return json.dumps(statement, sort_keys=True, separators=(",", ":")).encode()


def _stream_fault(place: Path, key: object) -> str | None:
    """Return a text on a changed file of the stream ``key``; None if no file was changed."""
    folders = {path.name for path in (place / "ticks").iterdir()}
    there = {path.name for path in place.iterdir()}
    if more := there - {_STREAM, SIGNATURE, "ticks", "private", "verifier"}:
        return f"{min(more)!r} was not released"
    ticks = [f"{tick:04d}" for tick in range(1, len(folders) + 1)]
    if folders != {*ticks}:
        return "'ticks' holds something else than 0001, 0002 and so on, or one of them is missing"
    for tick, name in enumerate(ticks, 1):
        folder = place / "ticks" / name
        record = read_json(folder / RECORD, _MOST_JSON)
        if (record["stream"], record["tick"]) != (key, tick):
            return f"'ticks/{name}' is of another stream or tick"
        if fault := folder_fault(folder, record["files"], every=True):
            return f"in ticks/{name}, {fault}"
    return None


def _subjects(payload: bytes) -> dict[str, str]:
    """Return {file: sha256} from an in-toto statement."""
    statement = parsed(payload)
    if (statement["_type"], statement["predicateType"]) != (_STATEMENT, _PREDICATE):
        raise ValueError
    return {own["name"]: own["digest"]["sha256"] for own in statement["subject"]}


def _changes(signed: dict[str, str], there: dict[str, str]) -> tuple[str | None, list[str]]:
    """Return a text on the first changed file, or None, and the folders of ticks added later."""
    before, now = ({m[0] for m in map(_TICK.match, files) if m} for files in (signed, there))
    new = now - before if _STREAM in signed else set[str]()
    for name in sorted({*signed, *there}):
        tick = _TICK.match(name)
        if signed.get(name) != there.get(name) and not (tick and tick[0] in new):
            state = "added" if name not in signed else "removed"
            state = "changed" if name in signed and name in there else state
            return f"{name!r} was {state} after it was signed", []
    return None, sorted(tick.rstrip("/") for tick in new)


def _check_continued(target: Path, stated: bytes, payload: bytes) -> None:
    """Raise OutputError unless only ticks were added after the earlier signature in ``target``."""
    try:
        fault, new = _changes(_subjects(stated), _subjects(payload))
    except MALFORMED:
        fault, new = None, []
    if fault is not None or not new:
        raise OutputError(
            f"sign: {target} is about other files than those that are there now; hint: remove "
            "it, and sign again"
        )


def _digests(place: Path) -> dict[str, str]:
    """Return sorted {file: sha256}, without signatures and the private files of a stream."""
    names = {name for name in files_in(place) if name != SIGNATURE}
    if (place / _STREAM).is_file():
        ticks = {tick[0] for tick in map(_TICK.match, names) if tick and tick[0] + RECORD in names}
        names -= {tick + SIGNATURE for tick in ticks}  # signatures of single ticks are not signed
        names = {name for name in names if not name.startswith(_PRIVATE)}
    for name in sorted(names):
        if (place / name).is_symlink():
            raise OutputError(
                f"{place / name} is a link, and no file inside the folder; hint: the folder as it "
                "was written"
            )
    return {name: file_digest(place / name) for name in sorted(names)}


def _envelope(path: Path) -> tuple[bytes, list[Any]]:
    """Return the statement and the signatures in a DSSE envelope, without a check."""
    try:
        envelope = read_json(path, _MOST_JSON)
        signatures = [{**own} for own in envelope["signatures"]]
        payload = base64.b64decode(envelope["payload"], validate=True)
        if envelope["payloadType"] != _PAYLOAD:
            raise ValueError
    except FileNotFoundError:
        hint = f"its owner signs it by gaussnoise sign {path.parent} --key KEY"
        for above in Path(os.path.abspath(path)).parents[2:3]:
            if (above / _STREAM).is_file():
                hint = f"a stream is signed as a whole: gaussnoise verify {above} --key PUBLIC"
        raise OutputError(f"verify: {path.parent} has no {path.name}; hint: {hint}") from None
    except (OSError, binascii.Error, *MALFORMED) as error:
        raise OutputError(
            f"verify: {path} is no signature of a folder ({type(error).__name__})"
        ) from None
    return payload, signatures


def _encoded(payload: bytes) -> bytes:
    """Return the bytes to sign for a statement: DSSE's pre-authentication encoding."""
    kind = _PAYLOAD.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _replace(target: Path, envelope: dict[str, object]) -> None:
    """Write a DSSE envelope to ``target`` in one step."""
    folder = Path(os.path.abspath(target.parent))
    scratch = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.signature")
    try:
        try:
            scratch.write_text(json.dumps(envelope, indent=2) + "\n", encoding="utf-8")
            sync(scratch)
            os.replace(scratch, target)
            sync(folder, deep=False)
        finally:
            remove(scratch)
    except OSError as error:
        raise OutputError(f"sign: cannot write {target} ({type(error).__name__})") from None


def _unreadable(place: Path, error: Exception) -> OutputError:
    return OutputError(f"{place} is not a complete published folder ({type(error).__name__})")


def _name(key: "Ed25519PublicKey") -> str:
    """Return the name of a public key in signatures: the sha256 of the key in DER."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _private_key(path: Path, password: Password | None) -> Any:
    """Read the Ed25519 private key in a file; ask for the password if the key has one."""
    load_pem, load_ssh, kind = _loaders("private")
    content = _content("sign", path, "private")
    load = load_ssh if content.startswith(b"-----BEGIN OPENSSH") else load_pem
    try:
        key = load(content, None)
    except Exception as error:  # noqa: BLE001 (a file of any content)
        # a file with a password raises TypeError, or ValueError for ssh-keygen before version 45
        if not isinstance(error, TypeError) and "password" not in str(error):
            raise _no_key("sign", path, "private", type(error).__name__) from None
        given = password() if callable(password) else password
        if not given:
            raise ParameterError(
                f"sign: expected the password of {path}, got none; hint: password=..., or run the "
                "command in a terminal, which asks for it"
            ) from None
        try:
            key = load(content, given.encode())
        except Exception:  # noqa: BLE001 (a wrong password may give any content)
            raise ParameterError(f"sign: the password does not open {path}") from None
    if not isinstance(key, kind):
        raise _no_key("sign", path, "private", type(key).__name__)
    return key


def _public_key(path: Path) -> Any:
    """Read the Ed25519 public key in a file."""
    load_pem, load_ssh, kind = _loaders("public")
    content = _content("verify", path, "public")
    if b"PRIVATE KEY" in content:
        raise _no_key("verify", path, "public", "a private key")
    try:
        key = (load_ssh if content.startswith(b"ssh-") else load_pem)(content)
    except Exception as error:  # noqa: BLE001 (a file of any content)
        raise _no_key("verify", path, "public", type(error).__name__) from None
    if not isinstance(key, kind):
        raise _no_key("verify", path, "public", type(key).__name__)
    return key


def _loaders(kind: str) -> tuple[Any, Any, type]:
    """Return the readers of PEM and of ssh-keygen's format, and the class of Ed25519 keys."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise NotAvailableError(
            'signing: needs cryptography; hint: pip install "gaussnoise[sign]"'
        ) from None
    names = (f"load_{form}_{kind}_key" for form in ("pem", "ssh"))
    pem, ssh = (getattr(serialization, name) for name in names)
    return pem, ssh, getattr(ed25519, f"Ed25519{kind.capitalize()}Key")


def _content(who: str, path: Path, kind: str) -> bytes:
    """Return the first ``_MOST_KEY`` bytes of the file of a key."""
    try:
        with opened(path) as file:
            return file.read(_MOST_KEY)
    except FileNotFoundError:
        raise _no_key(who, path, kind, "no such file") from None
    except OSError as error:
        raise _no_key(who, path, kind, type(error).__name__) from None


def _no_key(who: str, path: Path, kind: str, got: str) -> ParameterError:
    """Return the error, without content of the file, for a file that holds no key of this kind."""
    made = "openssl genpkey -algorithm ed25519 -out key.pem, and for the public key openssl pkey "
    return ParameterError(
        f"{who}: expected an Ed25519 {kind} key in {path}, got {got}; hint: {made}-in key.pem "
        "-pubout -out public.pem"
    )
