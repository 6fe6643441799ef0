"""What a table of a gigabyte costs to begin with: seconds and memory of ``init``.

    python benchmarks/gigabyte.py                 a gigabyte as .csv, .jsonl and .csv.gz, some minutes
    python benchmarks/gigabyte.py --megabytes 50

Rows are texts of some words with one of two labels; every file is written, looked at and removed.
"""

import argparse
import gzip
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import yaml

FORMS = ("csv", "jsonl", "csv.gz")
WORDS = ("plain", "long", "bright", "slow", "narrow", "green", "late", "quiet")
MOST_GIGABYTES = 1.0
"""Of memory, whatever the size of the table."""


@contextmanager
def opened(file: Path) -> Iterator[IO[str]]:
    """A file to write text to, packed where its name says so."""
    packed = file.suffix == ".gz"
    with gzip.open(file, "wt", compresslevel=1) if packed else file.open("w", encoding="utf-8") as writer:
        yield writer


def write(file: Path, size: int) -> int:
    """Write rows until there are so many bytes of them; the number of rows."""
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=40)) for _ in range(1000)]
    is_json, rows, written = ".jsonl" in file.suffixes, 0, 0
    with opened(file) as writer:
        if not is_json:
            writer.write("text,label\n")
        while written < size:
            text, label = f"{rows} {texts[rows % len(texts)]}", ("good", "bad")[rows % 3 % 2]
            line = json.dumps({"text": text, "label": label}) if is_json else f"{text},{label}"
            written += writer.write(f"{line}\n")
            rows += 1
    return rows


def looked_at(file: Path) -> tuple[float, float]:
    """Seconds, and gigabytes at most, of ``deltaspace init``."""
    program = "import sys; from deltaspace.commands.main import main; sys.exit(main(sys.argv[1:]))"
    options = ("init", file.name, "--output", "study.yaml", "--overwrite", "--no-steps")
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", program, *options], cwd=file.parent, check=True, capture_output=True)
    return time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024, help="Of text in each table.")
    parser.add_argument("--form", choices=FORMS, action="append", help="One of the tables.  [default: all]")
    given = parser.parse_args()
    size = given.megabytes * 2**20
    with tempfile.TemporaryDirectory() as folder:
        for form in given.form or FORMS:
            file = Path(folder) / f"reviews.{form}"
            rows = write(file, size)
            seconds, gigabytes = looked_at(file)
            found = yaml.safe_load((Path(folder) / "study.yaml").read_text())["task"]
            missed = "" if gigabytes <= MOST_GIGABYTES else "  MISSED"
            print(
                f"{file.name:<16}{rows:>12,} rows {seconds:>7.1f} s {gigabytes:>6.2f} GB (≤ {MOST_GIGABYTES:g}){missed}"
                f"  {found['kind']} of {found['text']!r} by {found['label']!r}, {found['max_tokens']} tokens"
            )
            file.unlink()


if __name__ == "__main__":
    main()
