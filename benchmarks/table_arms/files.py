"""Files of rows, read whole and replaced at once."""

from pathlib import Path

import pandas as pd
from pyarrow import ArrowInvalid

from trial_runner.files import whole_file


def read_frame(path: Path) -> pd.DataFrame:
    """Return the rows of a file; none if it does not exist.

    Raises:
        SystemExit: If it is no parquet file.
    """
    try:
        return pd.read_parquet(path) if path.exists() else pd.DataFrame()
    except ArrowInvalid as error:
        raise SystemExit(f"cannot read {path}: it is no parquet file. Choose another file.") from error


def write_frame(path: Path, frame: pd.DataFrame) -> None:
    """Replace a file at once."""
    with whole_file(path) as file:
        frame.to_parquet(file, index=False, compression="zstd")
