"""Signatures of published folders: who stands behind the files.

``sign`` writes ``signature.json`` into a folder, and ``verify`` checks it with a public key. The
file is a DSSE envelope (https://github.com/secure-systems-lab/dsse) around an in-toto statement
(https://in-toto.io/Statement/v1) with the sha256 of every other file, so that other tools read it.
"""

import base64
import binascii
import hashlib
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import NotAvailableError, OutputError, ParameterError
from .files.disk import (
    MALFORMED,
    RECORD,
    SIGNATURE,
    digests_in,
    file_digest,
    folder_fault,
    opened,
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
_MOST_KEY = 2**16  # bytes of the file of a key
_RECORDS = (RECORD, "changes.json")  # the second lists changes between two releases


def sign(
    folder: str | os.PathLike[str],
    key: str | os.PathLike[str],
    password: Password | None = None,
) -> str:
    """Sign all files of a published folder, and write the signature to its ``signature.json``.

    The files must be as they were published: their sha256 are compared with the folder's record
    first. Signing again with the same key changes nothing; another key adds its signature. The
    record does not list ``signature.json``, which is written after it; all readers accept the file.

    Args:
        folder: the folder of a release, of combined releases, of changes, or of one tick of a
            stream.
        key: the file of an Ed25519 private key, in PEM as ``openssl genpkey -algorithm ed25519``
            writes it, or as ``ssh-keygen -t ed25519`` does. It stays outside the folder.
        password: of the key's file, or a function that asks for it, called only if there is one.

    Returns:
        The name of the key in the signature: the sha256 of its public part (DER), in hexadecimal.

    Raises:
        NotAvailableError: ``cryptography`` is not installed; the message says how to install it.
        ParameterError: no Ed25519 private key, a missing or wrong password, or a key that is inside
            the folder and would be published with it.
        OutputError: the folder is no published one, was changed, has a signature of other files, or
            cannot be written.

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
            raise OutputError(
                f"sign: {target} is about other files than those that are there now; hint: remove "
                "it, and sign again"
            )
    name = _name(private.public_key())
    signature = {"keyid": name, "sig": _text(private.sign(_encoded(payload)))}
    if signature not in others:
        signatures = [*(own for own in others if own.get("keyid") != name), signature]
        _replace(
            target,
            {"payloadType": _PAYLOAD, "payload": _text(payload), "signatures": signatures},
        )
    return name


def verify(folder: str | os.PathLike[str], key: str | os.PathLike[str]) -> str:
    """Check that the owner of a key signed exactly the files that are in a folder now.

    A signature says who stands behind the files, and not that they are true: whether they follow
    from each other is checked by ``load`` and by :mod:`gaussnoise.verifier`. The public key must
    come from its owner by another way than the folder.

    Args:
        folder: a folder with a ``signature.json``.
        key: the file of an Ed25519 public key, in PEM or as ``ssh-keygen`` writes it.

    Returns:
        The name of the key: the sha256 of its DER, in hexadecimal.

    Raises:
        NotAvailableError: ``cryptography`` is not installed; the message says how to install it.
        ParameterError: no Ed25519 public key.
        OutputError: there is no signature of this key; or a file was changed, added or removed
            since.

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
        statement = json.loads(payload)
        if (statement["_type"], statement["predicateType"]) != (_STATEMENT, _PREDICATE):
            raise ValueError
        signed = {own["name"]: own["digest"]["sha256"] for own in statement["subject"]}
        there = _digests(place)
    except (OSError, RecursionError, *MALFORMED) as error:
        raise _unreadable(place, error) from None
    for name in sorted({*signed, *there}):
        if signed.get(name) != there.get(name):
            state = "added" if name not in signed else "removed"
            state = "changed" if name in signed and name in there else state
            raise OutputError(
                f"verify: in {place}, {name!r} was {state} after it was signed; hint: the folder "
                "as it was signed"
            )
    return _name(public)


def _statement(place: Path) -> bytes:
    """Return the in-toto statement of a folder, once its files agree with its record."""
    try:
        record = next((name for name in _RECORDS if (place / name).is_file()), None)
        if record is None:
            ticks = (place / "stream.json").is_file()
            raise OutputError(
                f"sign: expected a published folder, with release.json or changes.json, got {place}"
                + ("; hint: sign each tick, ticks/1 and so on" if ticks else "")
            )
        content = read_json(place / record)
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


def _digests(place: Path) -> dict[str, str]:
    """Return the sha256 of all files but the signature, in the order of their names."""
    found = digests_in(place)
    if (place / RECORD).is_file():
        found[RECORD] = file_digest(place / RECORD)
    return dict(sorted(found.items()))


def _envelope(path: Path) -> tuple[bytes, list[Any]]:
    """Return the payload of an envelope, and its signatures, none of which is checked."""
    try:
        envelope = read_json(path)
        signatures = [{**own} for own in envelope["signatures"]]
        payload = base64.b64decode(envelope["payload"], validate=True)
        if envelope["payloadType"] != _PAYLOAD:
            raise ValueError
    except FileNotFoundError:
        raise OutputError(
            f"verify: {path.parent} has no {path.name}; hint: gaussnoise sign FOLDER --key KEY"
        ) from None
    except (OSError, binascii.Error, *MALFORMED) as error:
        raise OutputError(
            f"verify: {path} is no signature of a folder ({type(error).__name__})"
        ) from None
    return payload, signatures


def _encoded(payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's pre-authentication encoding."""
    kind = _PAYLOAD.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _replace(target: Path, envelope: dict[str, object]) -> None:
    """Write the signature in one step, so that the folder never has a file without a name."""
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
    """Return the name of a key in envelopes."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def _private_key(path: Path, password: Password | None) -> Any:
    """Return the Ed25519 private key in a file."""
    load_pem, load_ssh, kind = _loaders("private")
    content = _content("sign", path, "private")
    load = load_ssh if content.startswith(b"-----BEGIN OPENSSH") else load_pem
    try:
        key = load(content, None)
    except Exception as error:  # noqa: BLE001 (a file of any content)
        # the file has a password: TypeError, but of ssh-keygen's files ValueError before version 45
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
    """Return the Ed25519 public key in a file."""
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
    """Return the functions that read keys in PEM and of ssh-keygen, and the class of keys."""
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
    """Return the content of the file of a key."""
    try:
        with opened(path) as file:
            return file.read(_MOST_KEY)
    except OSError as error:
        raise _no_key(who, path, kind, type(error).__name__) from None


def _no_key(who: str, path: Path, kind: str, got: str) -> ParameterError:
    """Return the error for a file without the expected key, of which nothing is shown."""
    made = "openssl genpkey -algorithm ed25519 -out key.pem, and for the public key openssl pkey "
    return ParameterError(
        f"{who}: expected an Ed25519 {kind} key in {path}, got {got}; hint: {made}-in key.pem "
        "-pubout -out public.pem"
    )
