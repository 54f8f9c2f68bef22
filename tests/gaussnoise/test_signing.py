"""Signatures of folders: other tools read them, and none passes over a changed file."""

import base64
import hashlib
import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise import signing, verifier
from gaussnoise.cli.app import run
from gaussnoise.errors import NotAvailableError, OutputError, ParameterError

pytestmark = pytest.mark.usefixtures("quick_pictures")

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa  # noqa: E402

PEOPLE = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 40, 65])])


def write_keys(place, name, key=None, form="PKCS8", password=None):
    """The files of a private key and its public key."""
    key = key or ed25519.Ed25519PrivateKey.generate()
    plain = serialization.NoEncryption()
    lock = serialization.BestAvailableEncryption(password) if password else plain
    way = getattr(serialization.PrivateFormat, form)
    secret, public = place / f"{name}.pem", place / f"{name}-public.pem"
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, way, lock))
    coded = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    if form == "OpenSSH":
        coded = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    public.write_bytes(key.public_key().public_bytes(*coded))
    return secret, public


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A published folder, and two pairs of keys beside it."""
    place = tmp_path_factory.mktemp("signed")
    gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(PEOPLE, out=place / "out")
    for name in ("ours", "theirs"):
        write_keys(place, name)
    return place


@pytest.fixture
def out(place, tmp_path):
    return Path(shutil.copytree(place / "out", tmp_path / "out"))


def test_a_signed_folder_is_read_as_before(place, out):
    name = signing.sign(out, place / "ours.pem")
    assert signing.verify(out, place / "ours-public.pem") == name
    release = gn.TableRelease.load(out)
    assert "count" in str(release.ask("count of sex=F"))
    assert verifier.verified(out)[0].startswith("checked")
    signed, unsigned = out.parent / "signed.html", out.parent / "unsigned.html"
    release.report(signed)
    gn.TableRelease.load(place / "out").report(unsigned)
    assert "had a signature of its files" in signed.read_text(encoding="utf-8")
    assert "was not signed" in unsigned.read_text(encoding="utf-8")


@pytest.mark.parametrize("fault", ["changed", "added", "removed", "record"])
def test_a_changed_folder_fails(place, out, fault):
    signing.sign(out, place / "ours.pem")
    if fault == "added":
        (out / "more.txt").write_text("more", encoding="utf-8")
    elif fault == "removed":
        (out / "method.txt").unlink()
    else:
        file = out / ("release.json" if fault == "record" else "summary.txt")
        file.write_bytes(file.read_bytes() + b"\n")
    with pytest.raises(OutputError, match=r"was (changed|added|removed) after it was signed"):
        signing.verify(out, place / "ours-public.pem")
    with pytest.raises(OutputError, match=r"sha256 differs|not released|missing|other files"):
        signing.sign(out, place / "ours.pem")


def test_a_consistent_forgery_fails_with_the_key_of_the_publisher_alone(place, out):
    """Someone who makes the whole folder anew can sign it, but not in the publisher's name."""
    signing.sign(out, place / "ours.pem")
    forged = out.parent / "forged"
    gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(PEOPLE, out=forged)
    shutil.copy(out / "signature.json", forged)
    with pytest.raises(OutputError, match="was changed after it was signed"):
        signing.verify(forged, place / "ours-public.pem")
    (forged / "signature.json").unlink()
    signing.sign(forged, place / "theirs.pem")
    with pytest.raises(OutputError, match="no signature of the key"):
        signing.verify(forged, place / "ours-public.pem")


def test_every_part_of_the_envelope_is_signed(place, out):
    signing.sign(out, place / "ours.pem")
    path = out / "signature.json"
    whole = json.loads(path.read_text(encoding="utf-8"))
    statement = json.loads(base64.b64decode(whole["payload"]))
    fewer = {**statement, "subject": statement["subject"][1:]}
    sig = base64.b64decode(whole["signatures"][0]["sig"])
    other = base64.b64encode(bytes([sig[0] ^ 1]) + sig[1:]).decode()
    for changed in (
        {**whole, "payload": base64.b64encode(json.dumps(fewer).encode()).decode()},
        {**whole, "payloadType": "application/json"},
        {**whole, "signatures": []},
        {**whole, "signatures": [{"keyid": "", "sig": other}]},
        {**whole, "signatures": [{"keyid": ""}]},
        {**whole, "signatures": 3},
        {**whole, "payload": "no base64"},
        [],
    ):
        path.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(OutputError):
            signing.verify(out, place / "ours-public.pem")
    # the name of a key is a hint for readers, which try every signature
    whole["signatures"][0]["keyid"] = "another name"
    path.write_text(json.dumps(whole), encoding="utf-8")
    signing.verify(out, place / "ours-public.pem")


def test_signing_twice_changes_nothing_and_a_second_key_adds_its_signature(place, out):
    signing.sign(out, place / "ours.pem")
    once = (out / "signature.json").read_bytes()
    signing.sign(out, place / "ours.pem")
    assert (out / "signature.json").read_bytes() == once
    with pytest.raises(OutputError, match="no signature of the key"):
        signing.verify(out, place / "theirs-public.pem")
    signing.sign(out, place / "theirs.pem")
    for name in ("ours", "theirs"):
        signing.verify(out, place / f"{name}-public.pem")
    assert {path.name for path in out.parent.iterdir()} == {"out"}  # no scratch file is left


def test_a_signature_of_other_files_is_not_replaced(place, out):
    signing.sign(out, place / "ours.pem")
    other = out.parent / "other"
    gn.plan(SCHEMA, 2, gn.zCDP(0.1)).release(PEOPLE, out=other)
    shutil.copy(out / "signature.json", other)
    with pytest.raises(OutputError, match="about other files"):
        signing.sign(other, place / "ours.pem")


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A stream of three ticks, of which two are published."""
    planned = gn.plan(SCHEMA, 1, gn.zCDP(0.2), over=gn.streams.Ticks(3))
    stream = planned.start(tmp_path_factory.mktemp("begun") / "stream")
    for number in (1, 2):
        stream.tick(PEOPLE, number=number)
    return stream.path


@pytest.fixture
def stream(begun, tmp_path):
    return Path(shutil.copytree(begun, tmp_path / "stream"))


def test_a_stream_is_signed_as_a_whole_and_again_after_the_next_tick(place, stream, tmp_path):
    ours, public = place / "ours.pem", place / "ours-public.pem"
    name = signing.sign(stream, ours)
    assert signing.verify(stream, public) == name
    assert verifier.verified(stream)[0].startswith("checked")
    once = (stream / "signature.json").read_bytes()
    signing.sign(stream / "ticks" / "0001", ours)  # for those who receive it alone
    signing.sign(stream, ours)
    assert (stream / "signature.json").read_bytes() == once
    published = shutil.copytree(stream, tmp_path / "published")
    shutil.rmtree(published / "private")
    assert signing.verify(published, public) == name

    again = gn.streams.Stream.open(stream)
    again.tick(PEOPLE, number=3)
    with pytest.raises(OutputError, match=r"after it was signed: 1, from ticks/0003 on.*sign "):
        signing.verify(stream, public)
    signing.sign(stream, place / "theirs.pem")
    with pytest.raises(OutputError, match="no signature of the key"):
        signing.verify(stream, public)  # it was of two ticks
    envelope = json.loads((stream / "signature.json").read_text(encoding="utf-8"))
    assert len(envelope["signatures"]) == 1
    signing.sign(stream, ours)
    for key in ("ours", "theirs"):
        signing.verify(stream, place / f"{key}-public.pem")
    assert len(gn.streams.Stream.open(stream).tables) == 3


@pytest.mark.parametrize(
    ("file", "act"),
    [
        ("stream.json", "change"),
        ("ticks/0001/release.json", "change"),
        ("ticks/0002/period/tables/1-sex.csv", "change"),
        ("ticks/0002/period/tables/1-sex.csv", "remove"),
        ("ticks/0001/more.txt", "change"),
        ("ticks/more.txt", "change"),
        ("more.txt", "change"),
        ("ticks/0001", "remove"),
        ("ticks/0002", "remove"),
        ("ticks/0001/signature.json\n", "change"),
        ("ticks/0001/period/signature.json", "change"),
        ("ticks/\u0661/signature.json", "change"),
        ("ticks/0001/\nprivate/x", "change"),
    ],
)
def test_no_change_of_a_signed_stream_goes_unnoticed(place, begun, stream, file, act):
    """Nor in a stream that went on since. Neither is signed again."""
    signing.sign(stream, place / "ours.pem")
    target = stream / file
    if act == "change":
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((target.read_bytes() if target.exists() else b"") + b"\n")
    elif target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    for later in (False, True):
        if later:
            shutil.copytree(begun / "ticks" / "0002", stream / "ticks" / "0003")
        with pytest.raises(OutputError, match=r"was (changed|added|removed) after it was signed"):
            signing.verify(stream, place / "ours-public.pem")
        with pytest.raises(OutputError, match=r"sign: "):
            signing.sign(stream, place / "ours.pem")


def test_only_a_published_tick_may_have_a_signature_of_its_own(place, stream):
    signing.sign(stream, place / "ours.pem")
    (stream / "ticks" / "0003").mkdir()
    (stream / "ticks" / "0003" / "signature.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match="published after it was signed"):
        signing.verify(stream, place / "ours-public.pem")


@pytest.mark.parametrize("kind", ["release", "stream"])
def test_a_link_is_no_file_of_a_signed_folder(place, out, stream, kind):
    """Its content could change behind the folder."""
    folder, name = (stream, "stream.json") if kind == "stream" else (out, "summary.txt")
    signing.sign(folder, place / "ours.pem")
    moved = shutil.move(folder / name, folder.parent / "moved")
    (folder / name).symlink_to(moved)
    with pytest.raises(OutputError, match="is a link"):
        signing.verify(folder, place / "ours-public.pem")
    (folder / "signature.json").unlink()
    with pytest.raises(OutputError, match="link"):
        signing.sign(folder, place / "ours.pem")


@pytest.mark.parametrize("fault", ["gap", "number", "stream", "file"])
def test_a_stream_that_was_not_published_so_is_not_signed(place, stream, fault):
    first, second = (stream / "ticks" / name for name in ("0001", "0002"))
    if fault == "gap":
        second.rename(stream / "ticks" / "0003")
    elif fault == "file":
        (stream / "notes.txt").write_text("notes", encoding="utf-8")
    else:
        record = json.loads((second / "release.json").read_text(encoding="utf-8"))
        record |= {"tick": 1} if fault == "number" else {"stream": "0" * 32}
        (second / "release.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(OutputError, match=r"is missing|another stream or tick|not released"):
        signing.sign(stream, place / "ours.pem")
    assert first.is_dir()
    assert not (stream / "signature.json").exists()


def test_a_tick_leads_to_its_stream(place, stream, capsys):
    tick, public = str(stream / "ticks" / "0001"), str(place / "ours-public.pem")
    assert run(["verify", tick, "--key", public]) == 1
    said = capsys.readouterr().out
    assert "UNKNOWN: no check of such a folder: one tick; check its stream" in said
    assert f"gaussnoise verify {stream} --key PUBLIC" in said.replace("\n", "")
    assert run(["sign", str(stream), "--key", str(place / "ours.pem")]) == 0
    assert "sign again after the next tick" in capsys.readouterr().out
    assert run(["verify", str(stream), "--key", public]) == 0


@pytest.mark.parametrize("kind", ["release", "stream"])
def test_others_read_the_envelope_and_the_statement(place, out, stream, kind):
    dsse = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    statement_pb2 = pytest.importorskip("in_toto_attestation.v1.statement_pb2")
    from google.protobuf import json_format
    from in_toto_attestation.v1.statement import Statement

    folder = stream if kind == "stream" else out
    name = signing.sign(folder, place / "ours.pem")
    content = json.loads((folder / "signature.json").read_text(encoding="utf-8"))
    envelope = dsse.Envelope.from_dict(content)
    keys = {}
    for own in ("ours", "theirs"):
        pem = (place / f"{own}-public.pem").read_bytes()
        keys[own] = signer.SSlibKey.from_crypto(serialization.load_pem_public_key(pem), name)
    assert list(envelope.verify([keys["ours"]], 1)) == [name]
    with pytest.raises(Exception, match="signature"):
        envelope.verify([keys["theirs"]], 1)
    assert envelope.payload_type == "application/vnd.in-toto+json"
    read = json_format.Parse(envelope.payload, statement_pb2.Statement())
    Statement.copy_from_pb(read).validate()
    stated = {own.name: own.digest["sha256"] for own in read.subject}
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert {*stated} == {x for x in files if not x.startswith("private/")} - {"signature.json"}
    for file, sha256 in stated.items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == sha256


@pytest.mark.parametrize("form", ["PKCS8", "OpenSSH"])
def test_a_key_with_a_password(place, out, tmp_path, form):
    if form == "OpenSSH":
        pytest.importorskip("bcrypt")
    secret, public = write_keys(tmp_path, "locked", form=form, password=b"open sesame")
    with pytest.raises(ParameterError, match="expected the password"):
        signing.sign(out, secret)
    with pytest.raises(ParameterError, match="does not open"):
        signing.sign(out, secret, "open rice")
    signing.sign(out, secret, lambda: "open sesame")
    signing.verify(out, public)
    signing.sign(out, place / "ours.pem", "needed by no key")


def test_a_wrong_key_is_named(place, out, tmp_path):
    secret, public = write_keys(tmp_path, "rsa", rsa.generate_private_key(65537, 2048))
    (tmp_path / "text").write_text("no key", encoding="utf-8")
    for file in (secret, tmp_path / "text", place / "ours-public.pem", tmp_path / "absent", "."):
        with pytest.raises(ParameterError, match="expected an Ed25519 private key"):
            signing.sign(out, file)
    with pytest.raises(OutputError, match=r"has no signature\.json"):
        signing.verify(out, place / "ours-public.pem")
    signing.sign(out, place / "ours.pem")
    for file in (public, tmp_path / "text", place / "ours.pem", tmp_path / "absent"):
        with pytest.raises(ParameterError, match="expected an Ed25519 public key"):
            signing.verify(out, file)


def test_a_private_key_inside_the_folder_is_refused(place, out):
    shutil.copy(place / "ours.pem", out)
    with pytest.raises(ParameterError, match="outside"):
        signing.sign(out, out / "ours.pem")


def test_folders_that_are_signed(place, tmp_path):
    """Combined releases and changes as well."""
    secret, public = place / "ours.pem", place / "ours-public.pem"
    release = gn.TableRelease.load(place / "out")
    again = gn.plan(SCHEMA, 1, gn.zCDP(0.2)).release(PEOPLE)
    gn.combine([release, again]).save(tmp_path / "both")
    gn.difference(release, again).save(tmp_path / "changes", of=[("sex",)])
    for folder in (tmp_path / "both", tmp_path / "changes"):
        signing.sign(folder, secret)
        signing.verify(folder, public)
    gn.TableRelease.load(tmp_path / "both")
    with pytest.raises(OutputError, match="expected a published folder"):
        signing.sign(tmp_path, secret)


def test_without_the_extra_the_error_has_the_command(place, out, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    for act, key in ((signing.sign, "ours.pem"), (signing.verify, "ours-public.pem")):
        with pytest.raises(NotAvailableError, match=r'pip install "gaussnoise\[sign\]"'):
            act(out, place / key)


def test_the_commands(place, out, capsys, monkeypatch, tmp_path):
    assert run(["verify", str(out)]) == 0
    assert "who signed" not in capsys.readouterr().out
    assert run(["sign", str(out), "--key", str(place / "ours.pem"), "--json"]) == 0
    name = json.loads(capsys.readouterr().out)["key"]
    assert run(["verify", str(out)]) == 0
    assert "unchecked  signature.json: who signed" in capsys.readouterr().out
    assert run(["verify", str(out), "--key", str(place / "ours-public.pem")]) == 0
    assert f"checked    the signature of all files, by the key {name}" in capsys.readouterr().out
    assert run(["verify", str(out), "--key", str(place / "theirs-public.pem")]) == 1
    assert "FAILED: verify: " in capsys.readouterr().out
    secret, public = write_keys(tmp_path, "locked", password=b"open sesame")
    monkeypatch.setattr("typer.prompt", lambda text, **_: "open sesame")
    assert run(["sign", str(out), "--key", str(secret)]) == 0
    assert run(["verify", str(out), "--key", str(public)]) == 0
