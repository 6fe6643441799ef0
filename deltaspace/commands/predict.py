"""``deltaspace predict``."""

from pathlib import Path

import click

from deltaspace.commands.options import MOST_NUMBER, examples, json_option, say


@click.command(
    "predict",
    epilog=examples(
        "deltaspace predict winner --input new.jsonl --output predicted.jsonl",
        "deltaspace predict winner --input new.jsonl --output predicted.jsonl --text premise,hypothesis",
        "deltaspace predict winner --input new.jsonl --output predicted.jsonl --backbone ./roberta-base",
    ),
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--input",
    "source",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="One JSON object a line.",
)
@click.option(
    "--output",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path),
    help="A new file: the same lines in the same order, with what was predicted.",
)
@click.option(
    "--batch-size", type=click.IntRange(1, MOST_NUMBER), default=32, show_default=True, help="Lines of a pass."
)
@click.option("--backbone", metavar="NAME|FOLDER", help="Where the backbone is now.  [default: as in the export]")
@click.option("--text", "columns", metavar="KEY[,KEY]", help="What is read of a line.  [default: as in training]")
@json_option
def command(  # noqa: PLR0913 - one argument per option
    folder: Path, source: Path, output: Path, batch_size: int, backbone: str | None, columns: str | None, as_json: bool
) -> None:
    """Predict the lines of a file with an export.

    DIR is what 'deltaspace export' or 'deltaspace train' wrote. Each line gets a prediction: of a classification the
    label, beside it the scores (the probability of every label); of other tasks the text that was written. Nothing is
    overwritten, and the output is there whole or not at all.
    """
    from deltaspace.commands.output import echo_json
    from studies.exports.inference import PredictionOptions, predict

    tenths = 0

    def tell(done: int, lines: int) -> None:
        nonlocal tenths
        if 10 * done // lines > tenths:
            tenths = 10 * done // lines
            say(f"predicted {done:,} of {lines:,}", err=True)

    if not folder.is_dir():
        raise click.UsageError(f"an export must be a folder; there is no {folder}.")
    if not source.exists():
        raise click.UsageError(f"the input must be a file; there is no {source}.")
    keys = () if columns is None else tuple(key.strip() for key in columns.split(","))
    options = PredictionOptions(batch_size=batch_size, backbone=backbone, columns=keys)
    result = predict(folder, source, output, options, tell)
    if as_json:
        echo_json(result)
    else:
        say(f"{result.lines:,} lines with predictions are in {result.output}.")
