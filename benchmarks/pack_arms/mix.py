"""Trials of the benchmark, of different forms, sizes, insertions, gates and learning rates.

The first trials are mixed as well: the first four have four forms, the first eight bottlenecks from 1 to 256.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from pack_arms.setting import HEAD_RATE, Setting
from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.published import published_method
from search_space.validity import check_on
from trial_runner.requests import TrialRequest

_LOWEST_RATE, _HIGHEST_RATE = 3.0e-4, 3.0e-3
_RATES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedTrial:
    """Published method and its sizes.

    Attributes:
        method: Name of the method.
        sizes: Bottlenecks by hyper-parameter, at most the width of the backbone.
        options: Other hyper-parameters.
    """

    method: str
    sizes: Mapping[str, int]
    options: Mapping[str, float | str]


def _trial(method: str, options: Mapping[str, float | str] | None = None, **sizes: int) -> MixedTrial:
    return MixedTrial(method=method, sizes=sizes, options=options or {})


MIX: tuple[MixedTrial, ...] = (
    _trial("lora_qv", r=8),
    _trial("sequential_adapter_ffn", r=64),
    _trial("prefix_tuning", l=16),
    _trial("ia3"),
    _trial("scaled_parallel_adapter_ffn", r=256),
    _trial("lora_ffn", r=1),
    _trial("houlsby_adapter", {"act": "gelu"}, r=16),
    _trial("bitfit"),
    _trial("mam_adapter", l=8, r=128),
    _trial("compacter", r=32),
    _trial("pfeiffer_adapter", {"act": "silu"}, r=48),
    _trial("lora_kv", r=32),
    _trial("parallel_adapter_attn", r=24),
    _trial("scaled_parallel_adapter_ffn_learned", r=96),
    _trial("prefix_plus_lora_ffn", l=4, r=16),
    _trial("parallel_adapter_ffn", r=2),
    _trial("lora_qv", r=256),
    _trial("sequential_adapter_attn", r=8),
    _trial("prefix_tuning", l=64),
    _trial("pa_attn_plus_pa_ffn", ra=12, r=40),
    _trial("multihead_parallel_adapter", r=4),
    _trial("lora_ffn", r=64),
    _trial("compacter_pp", r=64),
    _trial("prompt_tuning", l=8),
    _trial("sequential_adapter_ffn", r=200),
    _trial("lora_qv", {"s": 1}, r=3),
    _trial("houlsby_adapter", r=100),
    _trial("ia3"),
    _trial("scaled_parallel_adapter_ffn", {"s": 2}, r=32),
    _trial("parallel_adapter_ffn", r=128),
    _trial("bitfit"),
    _trial("mam_adapter", l=30, r=20),
)


def mixed_trial(number: int) -> MixedTrial:
    """Return the trial of a number; after the end of the list it repeats with other seeds."""
    return MIX[number % len(MIX)]


def mixed_configuration(number: int, shape: BackboneShape) -> Configuration:
    """Return the configuration of a trial on a backbone. Raises `InvalidEditError` if it is not valid there."""
    trial = mixed_trial(number)
    sizes = {name: min(size, shape.width) for name, size in trial.sizes.items()}
    return _checked(published_method(trial.method).configuration(shape, {**sizes, **trial.options}), shape)


def equal_configuration(count: int, shape: BackboneShape) -> Configuration:
    """Return one parallel adapter per block, or two if the first ``count`` trials have nearer two sized edits.

    Its bottleneck is the mean of theirs.
    """
    trials = [mixed_configuration(number, shape) for number in range(count)]
    widths = [edit.sized_form.width for trial in trials for edit in trial.edits if edit.sized_form is not None]
    mean = max(1, round(fmean(widths)))
    if len(widths) < 1.5 * count:
        return _checked(published_method("parallel_adapter_ffn").configuration(shape, {"r": mean}), shape)
    sizes = {"ra": mean, "r": mean, "norm": "none"}
    return _checked(published_method("pa_attn_plus_pa_ffn").configuration(shape, sizes), shape)


def request(number: int, configuration: Configuration, setting: Setting) -> TrialRequest:
    """Build the request of a trial.

    Args:
        number: Number of the trial, from which its seed and its learning rate follow.
    """
    rate = _LOWEST_RATE * (_HIGHEST_RATE / _LOWEST_RATE) ** (number % _RATES / (_RATES - 1))
    return TrialRequest(
        trial=number,
        attempt=1,
        configuration=configuration,
        learning_rates=(
            rate if configuration.attention else 0.0,
            rate if configuration.ffn else 0.0,
            HEAD_RATE,
        ),
        plan=setting.plan,
        seed=number,
    )


def _checked(configuration: Configuration, shape: BackboneShape) -> Configuration:
    check_on(configuration.edits, shape)
    return configuration
