"""Seeds derived from other values."""

import hashlib


def hashed_seed(*parts: object, bits: int = 32) -> int:
    """Return a seed that depends on all parts, equal on every machine and in every process."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def seeded_fingerprint(fingerprint: str, seed: int) -> str:
    """Return the fingerprint of a trial that repeats another one with its own seed."""
    return f"{fingerprint}:{seed}"
