"""Seeds for everything random in a trial."""

import hashlib


def derived_seed(seed: int, purpose: str, index: int = 0) -> int:
    """Return a 63-bit seed that is independent for each purpose and index of a trial."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
