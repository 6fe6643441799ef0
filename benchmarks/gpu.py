"""All measurements that need a GPU, in one command: ``make gpu``.

    python benchmarks/gpu.py            an hour or two on one GPU.
    python benchmarks/gpu.py --quick    small sizes, also on a CPU, as a check.

First an equality, whose failure ends the program: trials in a mixed pack over three rungs, with recorded steps, equal
the same trials alone up to rounding in float64. In bf16 the difference of the losses is printed. Then the planned
memory of RoBERTa-base's shape against the allocator's peak (`benchmarks/memory.py`). Last the throughput at 32 and 128
tokens, with and without dropout, against ``Trainer`` and peft (`benchmarks/packs.py`).
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from pack_arms.material import new_backbone, prepared_task
from pack_arms.mix import mixed_configuration, request
from pack_arms.setting import Setting

from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import load_backbone
from trial_runner.packs.pack import TrialPack
from trial_runner.requests import Failure, Reading, TrialRequest
from trial_runner.runner import TorchRunner

TRIALS = 8
RUNGS, FEW_RUNGS = (12, 24, 48), (3, 6, 12)
EQUAL = 1e-9
HERE = Path(__file__).parent


def new_setting(folder: Path, precision: str, *, is_small: bool) -> Setting:
    """Build a random RoBERTa with the shape of RoBERTa-base, or a small one, and return its setting."""
    has_gpu = torch.cuda.is_available()
    size = {"width": 64, "layers": 2, "tokens": 16} if is_small else {"width": 768, "layers": 12, "tokens": 128}
    if not folder.exists():
        new_backbone(folder, **size, vocabulary=2000 if is_small else 50265)
    return Setting(
        device="cuda" if has_gpu else "cpu",
        backbone=str(folder),
        embedded_task=False,
        tokens=size["tokens"],
        batch_size=4 if is_small else 16,
        steps=(FEW_RUNGS if is_small else RUNGS)[-1],
        threads=1,
        precision=precision,
    )


def train(runner: TorchRunner, trials: list[TrialRequest]) -> tuple[dict[tuple[int, int], Reading], TrialPack]:
    """Train trials in one pack; return their readings by trial and step, and the pack.

    Raises:
        RuntimeError: If a trial fails.
    """
    pack = runner.open_pack(len(trials))
    for trial in trials:
        pack.admit(trial)
    readings = {}
    for result in pack.advance(trials[0].plan.steps):
        if isinstance(result, Failure):
            raise RuntimeError(f"cannot train trial {result.trial} to its end: {result.reason}.")
        readings[result.trial, result.step] = result
    return readings, pack


def equality(setting: Setting) -> Iterator[str]:
    """Yield the largest difference between trials in a mixed pack and the same trials alone.

    Raises:
        RuntimeError: If it exceeds rounding in float64.
    """
    register_attention()
    weights = "float64" if setting.precision == "fp64" else "float32"
    backbone = load_backbone(setting.backbone, precision=weights, attn_implementation=ATTENTION)
    runner = TorchRunner(backbone, prepared_task(setting), precision=setting.precision)
    shape = runner.backbone.shape
    trials = [request(number, mixed_configuration(number, shape), setting) for number in range(TRIALS)]
    rungs = RUNGS if setting.steps == RUNGS[-1] else FEW_RUNGS
    trials = [replace(one, plan=replace(one.plan, evaluate_at_steps=rungs)) for one in trials]
    packed, pack = train(runner, trials)
    alone = {key: reading for trial in trials for key, reading in train(runner, [trial])[0].items()}
    runner.close()
    losses = ((one.metrics["validation_loss"], alone[key].metrics["validation_loss"]) for key, one in packed.items())
    difference = max(abs(own / reference - 1) for own, reference in losses)
    steps = pack.recorder
    replays = (
        "" if steps is None else f"; of {steps.run + steps.recorded + steps.replayed} steps {steps.replayed} replayed"
    )
    title = f"{setting.device}, {setting.precision}"
    yield f"{title}: losses of {TRIALS} packed trials differ by at most {difference:.1e}{replays}"
    if setting.precision == "fp64" and not difference < EQUAL:
        raise RuntimeError(f"losses of packed trials must differ by at most {EQUAL:g}; got {difference:g}.")
    if steps is not None and not steps.replayed:
        raise RuntimeError("steps on a GPU must be recorded and replayed; got 0 replays.")


def commands(*, is_quick: bool) -> Iterator[list[str]]:
    """Yield the commands of the other benchmarks."""
    if is_quick:
        yield ["memory.py", "--width", "64", "--layers", "2", "--tokens", "16", "--batch", "4", "--packs", "2"]
        yield ["packs.py", "--quick", "--dropout", "0.1", "--packs", "2", "--alone", "1"]
        return
    yield ["memory.py", "--width", "768", "--layers", "12", "--tokens", "128", "--batch", "32"]
    yield ["packs.py"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, also on a CPU")
    parser.add_argument("--equality", action="store_true", help="only the equality")
    arguments = parser.parse_args()
    if not (arguments.quick or torch.cuda.is_available()):
        sys.exit("cannot measure: PyTorch found no GPU. Check the program with --quick.")
    with tempfile.TemporaryDirectory(prefix="gpu-") as name:
        for precision in ("fp64", "bf16"):
            for line in equality(new_setting(Path(name) / "plain", precision, is_small=arguments.quick)):
                print(line, flush=True)
    for script, *options in () if arguments.equality else commands(is_quick=arguments.quick):
        print(f"\n{script} {' '.join(options)}", flush=True)
        subprocess.run([sys.executable, str(HERE / script), *options], check=True)


if __name__ == "__main__":
    main()
