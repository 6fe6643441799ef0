"""The same sweep of LoRA by an Optuna + Trainer + peft script and by ``deltaspace launch``: wall and processor time.

    python benchmarks/sweep.py                                      the embedded backbone and task.
    python benchmarks/sweep.py --backbone FOLDER --data FOLDER      .jsonl files with the columns text and label.

Both arms are whole processes with one thread, start and loading included, and run in turns: a pair has one of each, and
every second pair begins with the other. Configurations, drawn by the launch at random from ``space: lora``, steps,
batches, evaluations and precision are the same, and nothing is pruned. Scores differ by the task head, which is of
transformers in the script, and by the order of examples.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

import deltaspace
from search_space.configuration import Configuration
from studies.study_file import specification_of
from trial_runner.backbones import Backbone, load_backbone
from trial_runner.backbones.locate import embedded_folder
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.export.facts import BackboneFacts
from trial_runner.export.peft_format import write_peft
from trial_runner.export.trained import TrainedDelta
from trial_runner.runner import chosen_precision
from trial_runner.tasks.embedded.docstrings import read_docstrings

SCRIPT = Path(__file__).parent / "sweep_arms" / "script.py"
LAUNCH, BASELINE = "deltaspace launch", "Optuna + Trainer + peft"
_PEFT_KEYS = ("r", "lora_alpha", "target_modules", "rank_pattern", "alpha_pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one whole process.

    Attributes:
        wall_seconds: Time from its start to its end.
        processor_seconds: Processor time of all its threads.
        output: What it prints on standard output.
    """

    wall_seconds: float
    processor_seconds: float
    output: str


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--backbone", type=Path, help="folder of an encoder (default: the embedded one)")
    add("--data", type=Path, help="folder of train.jsonl and validation.jsonl (default: the embedded task)")
    add("--trials", type=int, default=12, metavar="N", help="trials of a sweep (default 12)")
    add("--steps", type=int, default=100, metavar="N", help="steps of a trial (default 100)")
    add("--batch", type=int, default=8, metavar="N", help="examples of a step (default 8)")
    add("--tokens", type=int, default=32, metavar="N", help="longest text (default 32)")
    add("--budget", default="0.5%", help="budget of a configuration (default 0.5%%)")
    add("--pairs", type=int, default=3, metavar="N", help="pairs of sweeps (default 3)")
    return parser.parse_args(words)


def study_of(arguments: argparse.Namespace, backbone: str, data: Path) -> dict[str, Any]:
    """Return the study file of the launch."""
    return {
        "name": "sweep",
        "backbone": backbone,
        "task": {"folder": str(data), "text": "text", "label": "label", "max_tokens": arguments.tokens},
        "space": "lora",
        "budget": arguments.budget,
        "trials": arguments.trials,
        "training": {"steps": arguments.steps, "batch_size": arguments.batch},
        "pruning": {"rule": "none", "first_rung_steps": arguments.steps},
        "search": {"sampler": "random", "published": "none", "replicates": 0},
        "fleet": {"backend": "inline"},
    }


def write_embedded(folder: Path) -> Path:
    """Write the embedded task as files of JSON lines."""
    for split, rows in read_docstrings().splits.items():
        pairs = zip(rows.columns[0], rows.labels, strict=True)
        lines = [json.dumps({"text": text, "label": label}) for text, label in pairs]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def run(command: Sequence[str], folder: Path) -> Cost:
    """Run a process to its end.

    Raises:
        RuntimeError: If it fails.
    """
    began_at = time.perf_counter()
    with (folder / "out").open("w+") as out, (folder / "err").open("w+") as errors:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall_seconds = time.perf_counter() - began_at
        if status:
            errors.seek(0)
            raise RuntimeError(f"cannot time {' '.join(command[1:4])}: {errors.read()[-2000:]}")
        out.seek(0)
        return Cost(wall_seconds=wall_seconds, processor_seconds=usage.ru_utime + usage.ru_stime, output=out.read())


def launched(study: Mapping[str, Any], folder: Path) -> Cost:
    """Launch a study by the command, on a new storage."""
    (folder / "study.json").write_text(json.dumps(study))
    for old in folder.glob("study.db*"):
        old.unlink()
    words = ["launch", "study.json", "--storage", "sqlite:///study.db", "--quiet", "--json"]
    return run([sys.executable, "-m", "deltaspace", *words], folder)


def written_plan(study: Mapping[str, Any], folder: Path) -> Path:
    """Write the plan of the script: the configurations and the training of the launch's trials."""
    specification = specification_of(study)
    training = specification.training_plan()
    backbone = load_backbone(study["backbone"])
    trials = list(deltaspace.open_study(study["name"], storage=f"sqlite:///{folder / 'study.db'}"))
    plan = {
        "backbone": study["backbone"],
        "data": study["task"]["folder"],
        "max_tokens": study["task"]["max_tokens"],
        "steps": training.steps,
        "batch": training.batch_size,
        "warmup": int(training.warmup_fraction * training.steps),
        "evaluate_at": training.evaluate_at_steps,
        "precision": chosen_precision("auto", torch.device("cpu"), backbone.source),
        "configurations": [
            {
                "lora": lora_of(trial.configuration, backbone, folder),
                "learning_rate": next(filter(None, trial.learning_rates.values())),
            }
            for trial in trials
        ],
    }
    path = folder / "plan.json"
    path.write_text(json.dumps(plan))
    return path


def lora_of(configuration: Configuration, backbone: Backbone, folder: Path) -> dict[str, Any]:
    """Return the arguments of peft's ``LoraConfig`` that are a configuration, as an export has them."""
    deltas = DeltaSet(configuration, backbone.shape, seed=0)
    untrained = TrainedDelta(
        deltas=deltas, head=None, trained_as=configuration, counts=deltas.counts, backbone_sha256=""
    )
    source = backbone.source
    facts = BackboneFacts(
        name=source.name,
        revision=None,
        weights_sha256="",
        family=backbone.shape.family,
        parameters=backbone.shape.parameters,
    )
    write_peft(folder, untrained, family=backbone.family, shape=backbone.shape, backbone=facts)
    written = json.loads((folder / "adapter_config.json").read_text())
    return {key: written[key] for key in _PEFT_KEYS}


def line(arm: str, costs: Sequence[Cost], baseline: Sequence[Cost]) -> str:
    """Format the costs of an arm: medians, and the median and the extremes of its ratio to the baseline."""
    cells = [f"{arm:<26}"]
    for name in ("wall_seconds", "processor_seconds"):
        own, other = ([getattr(cost, name) for cost in some] for some in (costs, baseline))
        ratios = [theirs / ours for ours, theirs in zip(own, other, strict=True)]
        spread = "" if costs is baseline else f"{median(ratios):.2f}x ({min(ratios):.2f} to {max(ratios):.2f})"
        cells.append(f"{median(own):>9.1f} s  {spread:<22}")
    return "".join(cells)


def main() -> None:
    arguments = arguments_of()
    with tempfile.TemporaryDirectory(prefix="sweep-") as name:
        folder = Path(name)
        backbone = str(arguments.backbone or embedded_folder())
        data = arguments.data.absolute() if arguments.data else write_embedded(folder)
        study = study_of(arguments, backbone, data)
        launched(study, folder)  # the first of all reads and tokenizes the data, and fills caches
        plan = written_plan(study, folder)
        precision = json.loads(plan.read_text())["precision"]
        print(
            f"{arguments.trials} trials of {arguments.steps} steps of {arguments.batch} texts, {precision}, one thread"
        )
        script, launches = list[Cost](), list[Cost]()
        for pair in range(arguments.pairs):
            arms = [lambda: script.append(run([sys.executable, str(SCRIPT), str(plan)], folder))]
            arms.append(lambda: launches.append(launched(study, folder)))
            for arm in reversed(arms) if pair % 2 else arms:
                arm()
            print(f"pair {pair + 1}: {script[-1].wall_seconds:.1f} s and {launches[-1].wall_seconds:.1f} s", flush=True)
        scores = [trial.score for trial in deltaspace.open_study("sweep", storage=f"sqlite:///{folder / 'study.db'}")]
        print(f"\n{'':<26}{'wall':>9}{'':<24}{'processor':>11}")
        print(line(BASELINE, script, script))
        print(line(LAUNCH, launches, script))
        print(f"mean score {fmean(json.loads(script[-1].output.splitlines()[-1])):.3f} and {fmean(scores):.3f}")


if __name__ == "__main__":
    main()
