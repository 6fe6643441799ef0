"""A small task that a tiny backbone learns: which of two letters a text has more often."""

import json
import random
from pathlib import Path


def write_letters(folder: Path, *, train: int = 48, validation: int = 24, test: int = 7) -> None:
    """So many texts of each split; no two of a split are the same."""
    draw = random.Random(0)
    folder.mkdir()
    for name, size in (("train", train), ("validation", validation), ("test", test)):
        rows = []
        for index in range(size):
            label, other = ("a", "b") if index % 2 else ("b", "a")
            rows.append({"text": f"{' '.join(draw.choices([label, other], [4, 1], k=6))} {index}", "label": label})
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
