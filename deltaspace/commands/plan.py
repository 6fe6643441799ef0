"""``deltaspace plan``."""

import click

from deltaspace.commands.completion import study_files
from deltaspace.commands.options import examples, json_option, set_option


@click.command(
    "plan",
    epilog=examples(
        "deltaspace plan study.yaml",
        "deltaspace plan study.yaml --gpu 80GB --pack 4",
        "deltaspace plan study.yaml --gpu H100 --set task.max_tokens=512 --json",
    ),
)
@click.argument("study", metavar="STUDY.yaml", shell_complete=study_files)
@click.option("--gpu", help="A size such as 80GB, or a kind such as H100; all kinds that are known without.")
@click.option("--pack", type=click.IntRange(min=1), help="Trials of a pack; as many as fit without.")
@click.option("--tokens", type=click.IntRange(min=8), help="Of every text; as many as the study allows without.")
@set_option("Any key of the study file, such as training.batch_size=4; repeatable.")
@json_option
def command(
    study: str,
    gpu: str | None,
    pack: int | None,
    tokens: int | None,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what memory a study would take on a GPU, before anything is loaded.

    STUDY.yaml is a study file or the name of a shipped example. Nothing but the backbone's config.json is read.
    Memory is that of the trials' own steps, computed with tensors that have no memory. Where the study does not fit,
    what to change is said.
    """
    from dashboards.terminal.plans import plan_renderable
    from deltaspace.commands.output import echo_json, show
    from deltaspace.startup import plan
    from studies.study_file import parse_override

    found = plan(
        study,
        overrides=dict(parse_override(setting) for setting in settings),
        gpu=gpu,
        pack=pack,
        tokens=tokens,
    ).plan
    if not as_json:
        show(plan_renderable(found))
        return
    echo_json(
        {
            "study": found.specification.name,
            "backbone": found.specification.backbone.as_json(),
            "weights_bytes": found.weights.all_bytes,
            "shards": found.weights.shards,
            "weights_bytes_of_each": found.weights.held_bytes,
            "tokens": found.tokens,
            "devices": [
                {
                    "gpu": one.gpu.name,
                    "memory_bytes": one.gpu.memory_bytes,
                    "fits": one.fits,
                    "pack": one.slots,
                    "checkpointing": one.checkpointing,
                    "micro_batch": one.micro_batch,
                    "evaluated": one.evaluated,
                    "used_bytes": one.used_bytes,
                    "trial_bytes": one.trial_bytes,
                    "advice": found.advice(one),
                }
                for one in found.devices
            ],
        }
    )
