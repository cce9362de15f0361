"""What a signature of approvals is made over, and what the log says about the signer. Pure.

One signature covers all approvals of one answer: the text lists the SHA-256 of each, so that a plan of many steps needs
one touch of a token. An approval holds everything that its entry says except where it stands in the log.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from guard.bound import canonical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from guard.ledger.formats import Entry
    from guard.ports import Signatures

KIND = "signing"
_PLACE = ("format", "seq", "at", "prev")
_SIGNATURE = ("signature", "signed")
_HEADER = "opsagent approvals, version 1"


def statement_sha256(entry: Mapping[str, Any], boot: str) -> str:
    """The hash of one approval: all of its fields but its place in the log and the signature itself."""
    said = {name: value for name, value in entry.items() if name not in _PLACE and name not in _SIGNATURE}
    return hashlib.sha256(canonical({**said, "boot": boot})).hexdigest()


def text_of(statements: Sequence[str]) -> bytes:
    """The text that is signed for the approvals of one answer."""
    return "\n".join((_HEADER, *statements, "")).encode("ascii")


def fault_of(entry: Mapping[str, Any], signatures: Signatures) -> str:
    """Why the approval in this entry is not signed as it has to be; "" when it is."""
    statements, signature = entry.get("signed"), entry.get("signature")
    if not isinstance(signature, str) or not isinstance(statements, list):
        return "it is not signed"
    if not all(isinstance(one, str) and one.isascii() for one in statements):
        return "it is not signed"
    if statement_sha256(entry, str(entry.get("boot"))) not in statements:
        return "what is signed is another approval"
    return signatures.fault(text_of(statements), signature)


def change_of_signing(last: Mapping[str, Any] | None, signatures: Signatures | None) -> list[Entry]:
    """An entry for the log when another signer, or none, is asked for than when it was last said.

    Args:
        last: the newest entry of `KIND`; None when there is none.
    """
    signer = signatures.signer if signatures is not None else None
    allowed = hashlib.sha256(signatures.allowed.encode()).hexdigest() if signatures is not None else None
    before = (last.get("signer"), last.get("allowed_sha256")) if last else (None, None)
    if before == (signer, allowed):
        return []
    return [{"kind": KIND, "signer": signer, "allowed_sha256": allowed, "signer_before": before[0]}]
