"""``deltaspace init``."""

from pathlib import Path
from typing import Any

import click

from deltaspace.commands.options import MOST_NUMBER, examples, json_option, notice, say


@click.command(
    "init",
    epilog=examples(
        "deltaspace init reviews.csv",
        "deltaspace init data/sst2 --budget 1% --output sst2.yaml",
        "deltaspace init train.tsv dev.tsv --text premise,hypothesis --label gold_label",
        "deltaspace init nyu-mll/glue --configuration sst2",
        "deltaspace init --from-python notebook.py:frame --name reviews",
    ),
)
@click.argument("data", metavar="FOLDER|FILES|HUB_NAME", nargs=-1)
@click.option("--from-python", metavar="MODULE:NAME", help="A frame or a Dataset; also FILE.py:NAME, or a function.")
@click.option("--configuration", metavar="NAME", help="Of a dataset of the hub, such as sst2 of nyu-mll/glue.")
@click.option("--name", metavar="NAME", help="Of the study.  [default: that of --output, or of the data]")
@click.option(
    "--backbone",
    metavar="NAME|FOLDER",
    help="[default: embedded; t5-small where texts are written; Qwen/Qwen3-0.6B for dialogues]",
)
@click.option("--budget", metavar="SHARE|N", default="0.5%", help="Share of the backbone, or number of parameters.")
@click.option(
    "--trials",
    metavar="N",
    type=click.IntRange(1, MOST_NUMBER),
    help="Trials in all.  [default: those that there is time for]",
)
@click.option("--time", metavar="TIME", default="1h", help="What the study may take if no trial is pruned.")
@click.option("--no-steps", is_flag=True, help="Train nothing, so that nothing is known of the time.")
@click.option("--kind", metavar="KIND", help="Of the task, such as classification.  [default: from the columns]")
@click.option("--text", metavar="COLUMN[,COLUMN]", help="Of a classification.  [default: from the columns]")
@click.option("--label", metavar="COLUMN", help="Of a classification.  [default: from the columns]")
@click.option("--source", metavar="COLUMN", help="What is read where a text is written.  [default: from the columns]")
@click.option("--target", metavar="COLUMN", help="What is written.  [default: from the columns]")
@click.option("--output", metavar="FILE.yaml", type=click.Path(path_type=Path), help="[default: NAME.yaml]")
@click.option("--overwrite", is_flag=True, help="Write the study file even if it is there.")
@json_option
def command(  # noqa: PLR0913 - one argument per option
    data: tuple[str, ...],
    from_python: str | None,
    configuration: str | None,
    text: str | None,
    output: Path | None,
    no_steps: bool,
    overwrite: bool,
    as_json: bool,
    **given: str | int | None,
) -> None:
    """Look at data and write a study file for it.

    A FOLDER holds train, and maybe validation and test, as .jsonl, .json, .csv, .tsv, .parquet or .arrow; FILES are
    such files. Each key of the study file that was found, rather than chosen, has a comment that says how. Some trials
    are trained for a few seconds to find how many there is time for; nothing is recorded.
    """
    if bool(data) == (from_python is not None):
        raise click.UsageError("name data, or --from-python, and not both.")
    if not no_steps:
        notice("reading the data; then a few steps are timed, which takes up to a minute …")

    import yaml

    from deltaspace.commands.output import echo_json
    from deltaspace.startup import init

    found: object = list(data)
    if from_python is not None:
        from studies.init.sources import object_of

        found = object_of(from_python)
        given["name"] = given["name"] or from_python.rpartition(":")[2].lower()
    columns = None if text is None else [name.strip() for name in text.split(",")]
    options: dict[str, Any] = {"overwrite": overwrite, "configuration": configuration, "takes_steps": not no_steps}
    file = init(found, output, text=columns, **(options | given))
    written = file.read_text(encoding="utf-8")
    if as_json:
        echo_json({"file": str(file), "study": yaml.safe_load(written)})
    for line in written.splitlines():
        if line.startswith("# "):
            say(line[2:], err=True)
    say(f"wrote {file}; look it over, then: deltaspace check {file}", err=True)
