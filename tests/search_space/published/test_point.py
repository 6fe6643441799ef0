"""Published points: a method with settings, read once."""

import pickle

import pytest

from search_space.errors import SettingError, UnknownMethodError
from search_space.gates import FixedScale
from search_space.published import METHODS
from search_space.published.point import PublishedPoint


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("bitfit", "bitfit", {}),
        ("lora_qv:r=8", "lora_qv", {"r": 8}),
        (" lora_qv : rank = 8, s=1.5 ", "lora_qv", {"rank": 8, "s": 1.5}),
        ("intrinsic_said:dint=200", "intrinsic_said", {"dint": 200}),
        ("parallel_adapter_ffn:read=res_f,r=3", "parallel_adapter_ffn", {"read": "res_f", "r": 3}),
    ],
)
def test_a_point_is_a_method_with_settings(text, name, settings):
    point = PublishedPoint(text)
    assert point.method is METHODS[name]
    assert point.settings == settings
    assert point == text  # it is stored and shown as it was written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lora:r=8", "no published method 'lora'"),
        ("lora_qv:", "must look like lora_qv:r=8,s=2; got 'lora_qv:'"),
        ("lora_qv:r", "must look like lora_qv:r=8,s=2"),
        ("lora_qv:r=", "must look like lora_qv:r=8,s=2"),
        ("lora_qv:r=8,", "must look like lora_qv:r=8,s=2"),
        ("lora_qv:r=8,r=9", "must set r once"),
        ("lora_qv:l=8", "lora_qv has no hyper-parameter 'l'"),
        ("lora_qv:r=0", "rank must be a whole number of at least 1; got 0"),
        ("lora_qv:r=many", "rank must be a whole number of at least 1; got many"),
        ("parallel_adapter_ffn:read=x", "read must be one of x_ffn, res_f; got x"),
    ],
)
def test_a_point_that_cannot_be_is_refused_in_one_line(text, message):
    with pytest.raises((UnknownMethodError, SettingError)) as caught:
        PublishedPoint(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_point_is_read_once_and_travels_as_its_text():
    point = PublishedPoint("lora_qv:r=8")
    assert PublishedPoint(point) is point
    there = pickle.loads(pickle.dumps(point))
    assert (type(there), there, there.settings) == (PublishedPoint, point, point.settings)


def test_a_point_has_a_fixed_size_if_it_names_one():
    sized = {text: PublishedPoint(text).has_fixed_size for text in ("lora_qv:r=8", "lora_qv:s=8", "lora_qv")}
    assert sized == {"lora_qv:r=8": True, "lora_qv:s=8": False, "lora_qv": False}


def test_scale_of_a_point_overrides_the_argument(roberta):
    def scale(text: str, given: float | None) -> float:
        gate = PublishedPoint(text).structure(roberta, scale=given).ffn[0].gate
        assert isinstance(gate, FixedScale)
        return gate.value

    assert (scale("mam_adapter", 3.0), scale("mam_adapter", None), scale("mam_adapter:s=5", 3.0)) == (3.0, 4.0, 5.0)
    assert PublishedPoint("bitfit").structure(roberta, scale=3.0) == PublishedPoint("bitfit").structure(roberta)


def test_only_full_fine_tuning_trains_everything(roberta):
    assert {name for name in METHODS if PublishedPoint(name).trains_whole_model(roberta)} == {"full_finetuning"}
