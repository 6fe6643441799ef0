"""Searches in plain Optuna: sweeps of LoRA and of published methods, and a search of the space of AutoPEFT."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import optuna
from optuna.pruners import MedianPruner
from optuna.samplers import BaseSampler, GPSampler, TPESampler
from optuna.trial import Trial, TrialState

from rival_arms.setting import ArmTrial, Cell, SearchResult
from search_space.configuration import Configuration
from search_space.dimensions import Activation, Heads, Port, Site
from search_space.edit import Edit
from search_space.edit_protocol import block_widths
from search_space.forms import Bottleneck, LowRank, SoftmaxMemory
from search_space.gates import Add, ConvexGate, FixedScale
from search_space.layers import SIXTHS, AllLayers, LayerPattern, LayerRange, Layers
from search_space.parameter_counts.counts import count
from search_space.space.layer_choice import stack_depth
from search_space.space.options import SpaceOptions
from search_space.space.space import SearchSpace
from trial_runner.requests import TrialRequest

_STARTUP = 8  # random trials before a model is fitted, and complete ones before any is stopped

# proposes the trial of a number; None if it does not fit the budget
Suggest = Callable[[Trial, Cell, int], ArmTrial | None]

optuna.logging.set_verbosity(optuna.logging.ERROR)


def sweep(cell: Cell, sampler: BaseSampler, suggest: Suggest, fixed: Sequence[dict[str, str]] = ()) -> SearchResult:
    """Optimize with a sampler and the median pruner; recommend the best score, as ``study.best_trial`` does.

    Args:
        fixed: Parameters that are given to the trials in turn instead of being sampled.
    """
    study = optuna.create_study(
        direction="maximize", sampler=sampler, pruner=MedianPruner(n_startup_trials=_STARTUP, n_warmup_steps=0)
    )
    done: list[ArmTrial] = []
    while len(done) < cell.trials:
        if fixed:
            study.enqueue_trial(fixed[len(done) % len(fixed)])
        trial = study.ask()
        proposal = suggest(trial, cell, len(done))
        if proposal is None:
            study.tell(trial, state=TrialState.FAIL)
            continue
        trained = _train(cell, trial, proposal)
        state = TrialState.PRUNED if trained.score is None else TrialState.COMPLETE
        study.tell(trial, trained.score, state=state)
        done.append(trained)
    best = max(done, key=lambda trained: -2.0 if trained.score is None else trained.score)
    return SearchResult(trials=done, recommended=best)


def _train(cell: Cell, trial: Trial, proposal: ArmTrial) -> ArmTrial:
    for reading in cell.runner.readings(proposal.request):
        if reading.step == proposal.request.plan.steps:
            return replace(proposal, score=reading.score, steps=reading.step)
        trial.report(reading.score, reading.step)
        if trial.should_prune():
            return replace(proposal, steps=reading.step)
    return proposal


def lora_sweep(cell: Cell) -> SearchResult:
    """Search LoRA alone with TPE."""
    return sweep(cell, _tpe(cell.seed), _lora)


def _tpe(seed: int, *, multivariate: bool = True) -> TPESampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return TPESampler(seed=seed, n_startup_trials=_STARTUP, multivariate=multivariate)


_Q, _K, _V, _O = (Port.Q, Port.X_ATTN), (Port.K, Port.CTX), (Port.V, Port.CTX), (Port.O, Port.CONCAT)
_FFN = ((Port.G, Port.X_FFN), (Port.U, Port.X_FFN), (Port.F, Port.M))  # a gate where the backbone has one
TARGETS = {
    "v": (_V,),
    "q,v": (_Q, _V),
    "q,k,v": (_Q, _K, _V),
    "q,k,v,o": (_Q, _K, _V, _O),
    "FFN": _FFN,
    "all linear": (_Q, _K, _V, _O, *_FFN),
}
_SWEPT = ("q,v", "q,k,v,o", "all linear")
SCALES = (1.0, 2.0, 4.0, 8.0)
LORA_RATES = (2e-4, 2e-2)


def lora(cell: Cell, targets: str, scale: float, most_layers: int | None = None) -> Configuration | None:
    """Return LoRA of the largest rank that fits the budget; None if rank 1 of one layer does not.

    No rank is above the width of the narrowest projection, as of grouped keys and values.

    Args:
        targets: Key of `TARGETS`.
        most_layers: Number of layers from the last one; fewer where rank 1 does not fit so many. None for all.
    """
    layers = stack_depth(cell.shape)
    for first in range(layers - (most_layers or layers), layers):
        where = AllLayers() if first == 0 else LayerRange(first=first, last=layers - 1)
        least = _lora_of(cell, targets, 1, scale, where)
        rank = cell.parameters // count(least, cell.shape).stored
        if rank:
            widths = [width for edit in least.edits for width in block_widths(edit, cell.shape)]
            return _lora_of(cell, targets, min(rank, *widths), scale, where)
    return None


def _lora_of(cell: Cell, targets: str, rank: int, scale: float, layers: Layers) -> Configuration:
    gate, form = FixedScale(value=scale), LowRank(width=rank)
    return Configuration(
        edits=tuple(
            Edit(
                site=Site.FFN if (write, read) in _FFN else Site.ATTENTION,
                write=write,
                read=read,
                form=form,
                gate=gate,
                layers=layers,
            )
            for write, read in TARGETS[targets]
            if write != Port.G or cell.shape.gated_ffn
        )
    )


def _lora(trial: Trial, cell: Cell, number: int) -> ArmTrial | None:
    targets = trial.suggest_categorical("targets", _SWEPT)
    scale = trial.suggest_categorical("scale", SCALES)
    rate = trial.suggest_float("learning_rate", *LORA_RATES, log=True)
    dropout = trial.suggest_categorical("dropout", (0.0, 0.05, 0.1))
    configuration = lora(cell, targets, scale)
    if configuration is None:
        return None
    request = cell.request(number, configuration, rate, rate)
    return _new_trial(replace(request, plan=replace(request.plan, lora_dropout=dropout)))


def published_sweep(cell: Cell) -> SearchResult:
    """Divide the trials among the published methods that fit; search the learning rates of each with TPE."""
    space = SearchSpace(shape=cell.shape, budget=cell.parameters, options=SpaceOptions())

    def suggest(trial: Trial, cell: Cell, number: int) -> ArmTrial:
        method = trial.suggest_categorical("method", methods)
        candidate = space.suggest_published(method, _MethodRates(trial, method))
        rates = candidate.attention_learning_rate, candidate.ffn_learning_rate
        return _new_trial(cell.request(number, candidate.configuration, *rates), method)

    methods = tuple(map(str, space.published_that_fit()))
    return sweep(cell, _tpe(cell.seed, multivariate=False), suggest, [{"method": method} for method in methods])


class _MethodRates:
    """Trial of Optuna with own parameters for the learning rates of one published method."""

    def __init__(self, trial: Trial, method: str) -> None:
        self._trial, self._method = trial, method

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return self._trial.suggest_float(f"{self._method}.{name}", low, high, log=log)

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return self._trial.suggest_categorical(f"{self._method}.{name}", choices)


def autopeft(cell: Cell) -> SearchResult:
    """Search the space of Zhou et al. 2024 with a Gaussian process and log expected improvement.

    The space has serial and parallel adapters at the FFN and prefixes at attention, each of some size or none. Each
    sixth of the layers is edited or not. There the cost is a second objective; here the proposed sizes are proportions
    that fill the budget. The learning rates of both sublayers are searched as well. The backbone must have six layers.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = GPSampler(seed=cell.seed, n_startup_trials=_STARTUP)
    return sweep(cell, sampler, _autopeft)


def _autopeft(trial: Trial, cell: Cell, number: int) -> ArmTrial:
    sixths = [sixth for sixth in range(1, SIXTHS + 1) if trial.suggest_int(f"layers.{sixth}", 0, 1)]
    sizes = {name: trial.suggest_int(name, 0, 3) for name in ("serial", "parallel", "prefix")}
    attention = trial.suggest_float("attention_rate", *SoftmaxMemory.learning_rates, log=True)
    ffn = trial.suggest_float("ffn_rate", *Bottleneck.learning_rates, log=True)
    return _new_trial(cell.request(number, _largest_modules(cell, sizes, sixths), attention, ffn))


def _largest_modules(cell: Cell, sizes: dict[str, int], sixths: Sequence[int]) -> Configuration:
    """Return the largest widths in the proportion of the sizes; drop the first sixths if width 1 is too large."""
    parts = {name: size for name, size in sizes.items() if size}
    while parts:
        for first in range(len(sixths)):
            largest, unit = None, 1
            while count(larger := _modules(parts, unit, sixths[first:]), cell.shape).stored <= cell.parameters:
                largest, unit = larger, unit + 1
            if largest is not None:
                return largest
        parts.pop(min(parts, key=lambda name: parts[name]))
    return Configuration(edits=())


def _modules(sizes: dict[str, int], unit: int, sixths: Sequence[int]) -> Configuration:
    widths = {name: unit * 2 ** (size - 1) for name, size in sizes.items()}  # sizes 1, 2 and 3 are 1, 2 and 4 units
    layers = AllLayers() if len(sixths) == SIXTHS else LayerPattern(sixths=tuple(sixths))
    edits: list[Edit] = []
    if "prefix" in widths:
        form = SoftmaxMemory(width=widths["prefix"], heads=Heads.KEY_VALUE)
        edits.append(
            Edit(site=Site.ATTENTION, write=Port.HEAD, read=Port.Q, form=form, gate=ConvexGate(), layers=layers)
        )
    for name, read in (("serial", Port.F), ("parallel", Port.X_FFN)):
        if name in widths:
            adapter = Bottleneck(width=widths[name], activation=Activation.RELU)
            edits.append(Edit(site=Site.FFN, write=Port.F, read=read, form=adapter, gate=Add(), layers=layers))
    return Configuration(edits=tuple(edits))


def _new_trial(request: TrialRequest, method: str | None = None) -> ArmTrial:
    return ArmTrial(request=request, score=None, steps=0, method=method)
