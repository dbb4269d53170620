"""Files that are ZIP archives of XML: checked before any parser sees them."""

import io
import zipfile

from app.errors import BadFile

MAX_UNPACKED_BYTES = 512 * 2**20
MAX_RATIO = 200
"""Of unpacked to packed size, beyond RATIO_FREE_BYTES. Office files stay below 50."""
RATIO_FREE_BYTES = 20 * 2**20
MAX_MEMBERS = 20_000
XML_SUFFIXES = (".xml", ".rels", ".opf", ".ncx", ".xhtml", ".html", ".htm", ".svg", ".vml")
OLE_SIGNATURE = bytes.fromhex("d0cf11e0a1b11ae1")
"""Begins Office files before 2007, and encrypted ones of today."""


def checked_archive(body: bytes) -> zipfile.ZipFile:
    """The archive, after looking for a password, for a size that explodes and for XML entity definitions.

    Raises:
        BadFile: it is one of these, or no archive.
    """
    if body.startswith(OLE_SIGNATURE):
        raise BadFile(
            "it is protected by a password or in the format of before 2007; save it anew without one"
        )
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise BadFile(f"it is damaged ({error})") from error
    members = archive.infolist()
    if any(member.flag_bits & 1 for member in members):
        raise BadFile("it is protected by a password; save it without one")
    n_unpacked = sum(member.file_size for member in members)
    if (
        len(members) > MAX_MEMBERS
        or n_unpacked > MAX_UNPACKED_BYTES
        or (n_unpacked > RATIO_FREE_BYTES and n_unpacked > MAX_RATIO * len(body))
    ):
        raise BadFile(
            f"it unpacks to {n_unpacked:,} bytes in {len(members):,} parts; allowed are"
            f" {MAX_UNPACKED_BYTES:,} bytes, {MAX_RATIO} times its own size, and {MAX_MEMBERS:,} parts"
        )
    for member in members:
        if member.filename.lower().endswith(XML_SUFFIXES) and b"<!ENTITY" in archive.read(member)[:65_536]:
            raise BadFile(f"it defines XML entities in {member.filename!r}, which is not allowed")
    return archive
