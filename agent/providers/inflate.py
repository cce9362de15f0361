"""Decompresses an answer that came compressed although it was asked for plain, in bounded pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_BYTES = 256 * 1024
"""A few bytes can hold gigabytes; no more than this is unpacked at once."""


class BadEncoding(ValueError):
    """The body is not in the encoding that its header names, or in one that is not known here."""


def inflated(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The pieces as they are for no encoding, unpacked for gzip and deflate.

    Raises:
        BadEncoding
    """
    named = [name for name in encoding.lower().replace(" ", "").split(",") if name not in ("", "identity")]
    if not named:
        yield from pieces
        return
    if named not in (["gzip"], ["x-gzip"], ["deflate"]):
        raise BadEncoding(f"the answer is packed as {repr(encoding)[:40]}, which was not asked for")
    import zlib

    # 32 makes zlib find out by itself whether it is gzip or zlib.
    unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        for piece in pieces:
            while True:
                out = unpack.decompress(piece, PIECE_BYTES)
                if out:
                    yield out
                if unpack.eof:
                    return
                piece = unpack.unconsumed_tail
                # A full piece may have more behind it although all of the input is taken.
                if not piece and len(out) < PIECE_BYTES:
                    break
    except zlib.error:
        raise BadEncoding(f"the answer is not {named[0]} as its header says") from None
    if not unpack.eof:
        raise BadEncoding("the packed answer breaks off")
