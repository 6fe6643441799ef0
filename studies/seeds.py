"""Seeds that derive from others."""

import hashlib


def hashed_seed(*parts: object, bits: int = 32) -> int:
    """A seed that depends on all parts, the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(str(part) for part in parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def seeded_fingerprint(fingerprint: str, seed: int) -> str:
    """The fingerprint of a trial that repeats another with a seed of its own."""
    return f"{fingerprint}:{seed}"
