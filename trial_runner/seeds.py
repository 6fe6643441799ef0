"""Seeds for everything random in a trial."""

import hashlib


def derived_seed(seed: int, purpose: str, index: int = 0) -> int:
    """A seed of its own for each purpose and index of a trial, 63 bits."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
