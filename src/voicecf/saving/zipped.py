"""Members as one zip archive that ends in a digest of itself, so that any damage is noticed."""

from __future__ import annotations

import zipfile
from hashlib import sha256
from io import BytesIO

from voicecf.errors import SavingError

# Loading takes four times the bytes of the members at worst.
MOST_BYTES, MOST_MEMBERS = 1 << 26, 1 << 12
# The digest is the comment at the end of the archive, in as many characters.
SEAL = 64
ENTRY = b"PK\x01\x02"  # what each entry in an archive's list of members begins with


def zipped(members: dict[str, bytes]) -> bytes:
    """Return an archive of members, sealed.

    Examples
    --------
    >>> from voicecf.saving.zipped import opened, unzipped, zipped
    >>> content = zipped({"a.txt": b"A", "b.txt": b"B"})
    >>> unzipped(content, opened(content))
    {'a.txt': b'A', 'b.txt': b'B'}
    """
    content = BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
        archive.comment = bytes(SEAL)
    body = content.getvalue()[:-SEAL]
    return body + _seal(body)


def _seal(body: bytes | memoryview) -> bytes:
    return sha256(body).hexdigest().encode("ascii")


def opened(content: bytes) -> zipfile.ZipFile:
    """Return an archive to read, after a check of how large it is."""
    check_bytes(len(content))
    if content.count(ENTRY) > MOST_MEMBERS:
        raise SavingError(f"it has more than {MOST_MEMBERS:,} members.")
    return zipfile.ZipFile(BytesIO(content))


def unzipped(content: bytes, archive: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the members of an opened archive, after a check of its seal and their sizes."""
    if content[-SEAL:] != _seal(memoryview(content)[:-SEAL]):
        raise SavingError("it was damaged or edited after it was saved. Copy or save it again.")
    infos = archive.infolist()
    check_bytes(sum(info.file_size for info in infos))
    members = {}
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SavingError("it is packed in a way that voicecf does not use.")
        if info.filename in members:
            raise SavingError(f"it has two members {info.filename!r:.80}.")
        with archive.open(info) as member:
            # No more than the checked size is ever unpacked, whatever there is.
            members[info.filename] = member.read(info.file_size)
    return members


def check_bytes(size: int) -> None:
    """Raise SavingError if so many bytes are too many."""
    if size > MOST_BYTES:
        raise SavingError(
            f"it has {size / 1e6:,.1f} MB, and at most {MOST_BYTES / 1e6:,.1f} are loaded. Fit on "
            "fewer rows if a step or the model keeps them, as KNNImputer does."
        )
