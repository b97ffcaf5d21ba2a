"""Small texts that a store keeps beside its cells, each with a checksum of its own."""

import hashlib
import re
from pathlib import PurePath

LARGEST = 2**16  # bytes
NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


def place(kind: str, name: str) -> PurePath:
    """Where a note stands, below the folder of notes."""
    if not NAME.fullmatch(kind) or not NAME.fullmatch(name):
        raise ValueError(f"{kind}/{name} is no name of a note")
    return PurePath(kind) / name


def packed(kind: str, name: str, text: str) -> bytes:
    """A note as it is written: its checksum, then its text."""
    content = text.encode()
    whole = f"{_checksum(kind, name, content)}\n".encode() + content
    if len(whole) > LARGEST:
        raise ValueError(f"a note of {len(whole)} bytes: at most {LARGEST} are read")
    return whole


def unpacked(kind: str, name: str, content: bytes) -> str:
    """The text of a note. A ValueError where it is not what was noted here."""
    checksum, _, text = content.partition(b"\n")
    if checksum.decode("ascii", "replace") != _checksum(kind, name, text):
        raise ValueError("its content does not match its checksum")
    return text.decode()


def _checksum(kind: str, name: str, text: bytes) -> str:
    """Of a note in its place: it says nothing in another's."""
    return hashlib.sha256(f"{kind}/{name}\n".encode() + text).hexdigest()
