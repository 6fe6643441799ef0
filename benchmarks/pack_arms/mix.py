"""The trials of the benchmark: unlike in form, size, insertion, gate and learning rate.

Every beginning of the list is mixed too: the first four have four forms, the first eight bottlenecks from 1 to 256.
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
class Member:
    """A published method and its sizes.

    Attributes:
        method: Name of the method.
        sizes: Bottlenecks, by hyper-parameter; those above the width of a backbone are cut to it.
        options: Other hyper-parameters.
    """

    method: str
    sizes: Mapping[str, int]
    options: Mapping[str, float | str]


def _member(method: str, options: Mapping[str, float | str] | None = None, **sizes: int) -> Member:
    return Member(method=method, sizes=sizes, options=options or {})


MIX: tuple[Member, ...] = (
    _member("lora_qv", r=8),
    _member("sequential_adapter_ffn", r=64),
    _member("prefix_tuning", l=16),
    _member("ia3"),
    _member("scaled_parallel_adapter_ffn", r=256),
    _member("lora_ffn", r=1),
    _member("houlsby_adapter", {"act": "gelu"}, r=16),
    _member("bitfit"),
    _member("mam_adapter", l=8, r=128),
    _member("compacter", r=32),
    _member("pfeiffer_adapter", {"act": "silu"}, r=48),
    _member("lora_kv", r=32),
    _member("parallel_adapter_attn", r=24),
    _member("scaled_parallel_adapter_ffn_learned", r=96),
    _member("prefix_plus_lora_ffn", l=4, r=16),
    _member("parallel_adapter_ffn", r=2),
    _member("lora_qv", r=256),
    _member("sequential_adapter_attn", r=8),
    _member("prefix_tuning", l=64),
    _member("pa_attn_plus_pa_ffn", ra=12, r=40),
    _member("multihead_parallel_adapter", r=4),
    _member("lora_ffn", r=64),
    _member("compacter_pp", r=64),
    _member("prompt_tuning", l=8),
    _member("sequential_adapter_ffn", r=200),
    _member("lora_qv", {"s": 1}, r=3),
    _member("houlsby_adapter", r=100),
    _member("ia3"),
    _member("scaled_parallel_adapter_ffn", {"s": 2}, r=32),
    _member("parallel_adapter_ffn", r=128),
    _member("bitfit"),
    _member("mam_adapter", l=30, r=20),
)


def member(number: int) -> Member:
    """What trial ``number`` is; the list begins anew after its end, with other seeds."""
    return MIX[number % len(MIX)]


def mixed_configuration(number: int, shape: BackboneShape) -> Configuration:
    """Trial ``number`` on a backbone. Raises `InvalidEditError` if it is not valid there."""
    one = member(number)
    sizes = {name: min(size, shape.width) for name, size in one.sizes.items()}
    return _checked(published_method(one.method).configuration(shape, {**sizes, **one.options}), shape)


def equal_configuration(count: int, shape: BackboneShape) -> Configuration:
    """One parallel adapter a block, or two where the first ``count`` trials of the mix have rather two sized edits.

    Its bottleneck is the mean of theirs.
    """
    trials = [mixed_configuration(number, shape) for number in range(count)]
    widths = [edit.sized_form.width for one in trials for edit in one.edits if edit.sized_form is not None]
    mean = max(1, round(fmean(widths)))
    if len(widths) < 1.5 * count:
        return _checked(published_method("parallel_adapter_ffn").configuration(shape, {"r": mean}), shape)
    sizes = {"ra": mean, "r": mean, "norm": "none"}
    return _checked(published_method("pa_attn_plus_pa_ffn").configuration(shape, sizes), shape)


def request(number: int, configuration: Configuration, setting: Setting) -> TrialRequest:
    """A trial as the runner takes it.

    Args:
        number: Decides its seed and its learning rate.
        configuration: What is trained.
        setting: How.
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
