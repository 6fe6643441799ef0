"""``deltaspace check``."""

import click

from deltaspace.commands.completion import study_files
from deltaspace.commands.options import examples, json_option, notice, set_option


@click.command(
    "check",
    epilog=examples(
        "deltaspace check docstrings",
        "deltaspace check study.yaml --set task.max_tokens=128",
        "deltaspace check study.yaml --no-steps --json",
        "deltaspace check --backbone facebook/opt-125m",
    ),
)
@click.argument("study", metavar="[STUDY.yaml]", required=False, shell_complete=study_files)
@click.option("--backbone", metavar="NAME", help="Look a backbone over instead: a folder or a hub name.")
@click.option("--no-steps", is_flag=True, help="Train nothing: no memory, no seconds, no duration.")
@set_option("Any key of the study file, such as training.steps=300; repeatable.")
@json_option
def command(study: str | None, backbone: str | None, no_steps: bool, settings: tuple[str, ...], as_json: bool) -> None:
    """Look a study over before it is launched: data, noise, time, memory, machine; or a backbone.

    STUDY.yaml is a study file or the name of a shipped example. Its data is read and made into tokens, and some trials
    are trained for a few seconds, which tells what the whole takes here. Nothing is recorded. What a constant
    prediction scores, what is cut, what is in two splits and what the validation examples cannot show is said. Where
    RAY_ADDRESS names a cluster, its nodes are tried: versions, folders, cores and GPUs.

    With --backbone a small copy of it, with two blocks and random weights, goes through the contract of edits, and what
    is possible is said: ports, forms, insertions, methods. One of no known family gets a table of ports of what its
    model declares, if that keeps the contract; a launch uses it.
    """
    if (study is None) == (backbone is None):
        raise click.UsageError("either a study or --backbone must be given; see deltaspace check --help.")
    if backbone is not None:
        _check_backbone(backbone, as_json)
        return
    _check_study(str(study), no_steps, settings, as_json)


def _check_backbone(backbone: str, as_json: bool) -> None:
    notice("reading the backbone; then every edit is put on a copy of two blocks, which takes up to a minute …")

    from dashboards.terminal.proofs import proof_json, proof_renderable
    from deltaspace.commands.output import echo_json, show
    from trial_runner.port_discovery.known_tables import proof_of

    proof = proof_of(backbone)
    if as_json:
        echo_json(proof_json(proof))
    else:
        show(proof_renderable(proof))
    if proof.problem is not None:
        raise click.exceptions.Exit(1)


def _check_study(study: str, no_steps: bool, settings: tuple[str, ...], as_json: bool) -> None:
    if not no_steps:
        notice("reading the data; then a few steps are timed, which takes up to a minute …")

    from dashboards.terminal.checks import check_renderable
    from deltaspace.commands.output import echo_json, show
    from studies.preflight import check
    from studies.study_file import parse_override, specification_of

    specification = specification_of(study, dict(parse_override(setting) for setting in settings))
    found = check(specification, takes_steps=not no_steps)
    if not as_json:
        show(check_renderable(found))
        return
    echo_json(
        {
            "study": specification.name,
            "backbone": specification.backbone.as_json(),
            "data": found.data,
            "budget": found.budget,
            "trials": specification.trials,
            "steps": specification.training.steps,
            "machine": found.machine,
            "cluster": found.cluster,
            "speed": found.speed,
            "forecast": found.forecast,
            "warnings": found.warnings,
        }
    )
