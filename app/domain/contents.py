"""What tells one content of a document from another."""

import struct
from hashlib import blake2b

from app.domain import Document, SplitterSettings


def content_hash(document: Document, splitter: SplitterSettings, *, fingerprint: str) -> bytes:
    """Digest of all that decides passages and vectors: 32 bytes; neither id nor metadata is in it.

    Every part is preceded by its length, so that no two different documents spell the same bytes.
    """
    digest = blake2b(digest_size=32)
    title = b"" if document.title is None else b"t" + document.title.encode()
    pages = struct.pack(f"<{len(document.page_starts)}q", *document.page_starts)
    split = f"{splitter.version},{splitter.max_tokens},{splitter.overlap_tokens}".encode()
    for part in (title, document.text.encode(), pages, split, fingerprint.encode()):
        digest.update(struct.pack("<q", len(part)))
        digest.update(part)
    return digest.digest()
