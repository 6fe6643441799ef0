"""Commands ``init``, ``check`` and ``plan``, which come before a launch."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deltaspace.commands.options import MOST_NUMBER, command, json_option, notice, override_option, say
from deltaspace.commands.output import answer, echo_json
from deltaspace.commands.shell_completion import study_files

if TYPE_CHECKING:
    from studies.preflight import Check
    from studies.resource_estimates.memory_plan import ResourcePlan

_NOTICE = "reading the data; then a few steps are timed, which takes up to a minute …"


@command(
    "init",
    "deltaspace init reviews.csv",
    "deltaspace init data/sst2 --budget 1% --output sst2.yaml",
    "deltaspace init train.tsv dev.tsv --text premise,hypothesis --label gold_label",
    "deltaspace init nyu-mll/glue --configuration sst2",
)
@click.argument("data", metavar="FOLDER|FILES|HUB_NAME", nargs=-1, required=True)
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
@click.option("--context", metavar="COLUMN", help="What a question is about.  [default: from the columns]")
@click.option("--question", metavar="COLUMN", help="Of question answering.  [default: from the columns]")
@click.option("--answers", metavar="COLUMN", help="Of question answering.  [default: from the columns]")
@click.option("--output", metavar="FILE.yaml", type=click.Path(path_type=Path), help="[default: NAME.yaml]")
@click.option("--overwrite", is_flag=True, help="Write the study file even if it is there.")
@json_option
def init(  # noqa: PLR0913 - one argument per option
    data: tuple[str, ...],
    configuration: str | None,
    text: str | None,
    output: Path | None,
    no_steps: bool,
    overwrite: bool,
    as_json: bool,
    **given: str | int | None,
) -> None:
    """Write a study file for data.

    A FOLDER holds train, and maybe validation and test, as .jsonl, .json, .csv, .tsv, .parquet or .arrow; FILES are
    such files. The task is made of columns with usual names. Otherwise give --text and --label, or --source and
    --target, or --context, --question and --answers; translation.en is the field en of a column translation. Some
    trials are trained for a few seconds to measure how many fit in the time; nothing is recorded.
    """
    if not no_steps:
        notice(_NOTICE)

    import yaml

    from deltaspace import startup

    columns = None if text is None else [name.strip() for name in text.split(",")]
    options: dict[str, Any] = {"overwrite": overwrite, "configuration": configuration, "takes_steps": not no_steps}
    file = startup.init(list(data), output, text=columns, **(options | given))
    written = file.read_text(encoding="utf-8")
    if as_json:
        echo_json({"file": str(file), "study": yaml.safe_load(written)})
    for line in written.splitlines():
        if line.startswith("# "):
            say(line[2:], err=True)
    say(f"wrote {file}; look it over, then: deltaspace check {file}", err=True)


@command(
    "check",
    "deltaspace check docstrings",
    "deltaspace check study.yaml --set task.max_tokens=128",
    "deltaspace check study.yaml --no-steps --json",
    "deltaspace check --backbone facebook/opt-125m",
)
@click.argument("study", metavar="[STUDY.yaml]", required=False, shell_complete=study_files)
@click.option("--backbone", metavar="NAME", help="Look a backbone over instead: a folder or a hub name.")
@click.option("--no-steps", is_flag=True, help="Train nothing: no memory, no seconds, no duration.")
@override_option("Any key of the study file, such as training.steps=300; repeatable.")
@json_option
def check(study: str | None, backbone: str | None, no_steps: bool, overrides: dict[str, object], as_json: bool) -> None:
    """Check a study before its launch: data, noise, time, memory, machine; or a backbone.

    STUDY.yaml is a study file or the name of a shipped example. Its data is read and tokenized, and some trials
    are trained for a few seconds to measure time and memory. Nothing is recorded. The output has the score of a
    constant prediction, cut texts, texts in two splits, and the resolution of the validation examples. If RAY_ADDRESS
    names a cluster, its nodes are tried: versions, folders, cores and GPUs.

    With --backbone a small copy of it, with two blocks and random weights, is tested with the contract of edits. The
    output lists its ports, forms, insertions and methods. A model of no known family gets a table of ports from its
    module names, if that keeps the contract; a launch uses it.
    """
    if (study is None) == (backbone is None):
        raise click.UsageError("either a study or --backbone must be given; see deltaspace check --help.")
    if backbone is not None:
        _check_backbone(backbone, as_json)
        return
    if not no_steps:
        notice(_NOTICE)

    from dashboards.terminal.checks import check_renderable
    from deltaspace import startup

    found = startup.check(str(study), overrides=overrides, takes_steps=not no_steps).check
    answer(found, check_renderable, as_json=as_json, entries=_check_entries)


def _check_backbone(backbone: str, as_json: bool) -> None:
    notice("reading the backbone; then every edit is put on a copy of two blocks, which takes up to a minute …")

    from dashboards.terminal.proofs import proof_json, proof_renderable
    from trial_runner.port_discovery.proof import proof_of

    proof = proof_of(backbone)
    answer(proof, proof_renderable, as_json=as_json, entries=proof_json)
    if proof.problem is not None:
        raise click.exceptions.Exit(1)


def _check_entries(found: "Check") -> dict[str, object]:
    study = found.specification
    facts = {"trials": study.trials, "steps": study.training.steps}
    measured = {name: getattr(found, name) for name in ("machine", "cluster", "speed", "forecast", "warnings")}
    named = {"study": study.name, "backbone": study.backbone.as_json()}
    return {**named, "data": found.data, "budget": found.budget, **facts, **measured}


@command(
    "plan",
    "deltaspace plan study.yaml",
    "deltaspace plan study.yaml --gpu 80GB --pack 4",
    "deltaspace plan study.yaml --gpu H100 --set task.max_tokens=512 --json",
)
@click.argument("study", metavar="STUDY.yaml", shell_complete=study_files)
@click.option("--gpu", help="A size such as 80GB, or a kind such as H100; all kinds that are known without.")
@click.option("--pack", type=click.IntRange(min=1), help="Trials of a pack; as many as fit without.")
@override_option("Any key of the study file, such as training.batch_size=4; repeatable.")
@json_option
def plan(study: str, as_json: bool, **options: Any) -> None:
    """Compute the memory of a study on a GPU, before anything is loaded.

    STUDY.yaml is a study file or the name of a shipped example. Only the backbone's config.json is read.
    Memory is that of the trials' own steps, computed with tensors without data. If the study does not fit,
    the output says what to change.
    """
    from dashboards.terminal.plans import plan_renderable
    from deltaspace import startup

    answer(startup.plan(study, **options).plan, plan_renderable, as_json=as_json, entries=_plan_entries)


def _plan_entries(found: "ResourcePlan") -> dict[str, object]:
    study, weights = found.specification, found.weights
    named = {"study": study.name, "backbone": study.backbone.as_json()}
    held = {"weights_bytes": weights.all_bytes, "shards": weights.shards, "weights_bytes_of_each": weights.held_bytes}
    return {**named, **held, "tokens": found.tokens, "devices": found.devices}
