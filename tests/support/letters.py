"""A small task that a tiny backbone learns: which of two letters a text has more often."""

import random
from pathlib import Path

from support.export_commands import write_splits


def write_letters(folder: Path, *, train: int = 48, validation: int = 24, test: int = 7) -> None:
    """So many texts of each split; no two of a split are the same."""
    draw = random.Random(0)

    def row(index: int) -> dict[str, str]:
        label, other = ("a", "b") if index % 2 else ("b", "a")
        return {"text": f"{' '.join(draw.choices([label, other], [4, 1], k=6))} {index}", "label": label}

    write_splits(folder, lambda size, _: [*map(row, range(size))], train, validation, test)


def letters_study(folder: Path, backbone: Path, **keys: object) -> dict[str, object]:
    """Return a study file of the task in ``letters`` of a folder, for a few steps of a tiny backbone."""
    task = {"folder": str(folder / "letters"), "text": "text", "label": "label", "max_tokens": 8}
    training = {"steps": 6, "batch_size": 8, "precision": "fp32"}
    plain: dict[str, object] = {"name": "letters", "budget": 300, "seed": 3}
    return {**plain, "backbone": str(backbone), "task": task, "training": training, **keys}
