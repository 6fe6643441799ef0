"""YAML that may be anybody's: bombs of aliases, depths and digits are refused, and what is usual is read."""

import pytest
import yaml

from studies.errors import SpecificationError
from studies.study_file.parser import parse_override, read_specification, specification_of
from studies.study_file.yaml_text import MOST_DIGITS, MOST_LEVELS, MOST_VALUES, dump_yaml, read_yaml

MINIMAL = {"name": "s", "backbone": "embedded", "task": {"name": "docstrings"}, "budget": "0.5%"}


def bomb(levels: int, each: int = 10) -> str:
    """Return ``each ** levels`` values in as many lines as levels."""
    lines = ["a0: &a0 [" + ", ".join("x" * each) + "]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * each) + "]" for n in range(1, levels)]
    return "\n".join(lines)


def merging_bomb(levels: int, each: int = 10) -> str:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [" + ", ".join([f"*a{n - 1}"] * each) + "]}" for n in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "aliases": (bomb(12), "more than 20,000 values"),
    "merges": (merging_bomb(12), "more than 20,000 values"),
    "itself": ("a: &a [*a]", "an alias that holds itself"),
    "itself, in a mapping": ("a: &a {b: {c: *a}}", "an alias that holds itself"),
    "lists": ("a: " + "[" * 20_000 + "]" * 20_000, "more than 50 levels"),
    "mappings": ("a: " + "{a: " * 10_000 + "1" + "}" * 10_000, "more than 50 levels"),
    "lists in blocks": ("- " * 20_000 + "a", "more than 50 levels"),
    "digits": ("a: " + "9" * 90_000, "a number of more than 100 digits"),
    "hexadecimal digits": ("a: 0x" + "f" * 90_000, "a number of more than 100 digits"),
    "digits after a point": ("a: 1." + "9" * 90_000, "a number of more than 100 digits"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_on_one_line_as_a_file_and_as_an_override(name, tmp_path):
    text, message = BOMBS[name]
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(SpecificationError, match=message) as caught:
        read_specification(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    if "\n" not in text:
        with pytest.raises(SpecificationError, match=message):
            parse_override(f"trials={text}")


def test_values_at_the_limits_are_read():
    deep = "[" * (MOST_LEVELS - 1) + "1" + "]" * (MOST_LEVELS - 1)
    assert str(read_yaml(deep)) == deep
    with pytest.raises(yaml.YAMLError):
        read_yaml(f"[{deep}]")
    values = [0] * (MOST_VALUES - 1)
    assert read_yaml(str(values)) == values
    with pytest.raises(yaml.YAMLError):
        read_yaml(str([0, *values]))
    digits = "9" * MOST_DIGITS
    assert read_yaml(digits) == int(digits)
    with pytest.raises(yaml.YAMLError):
        read_yaml(f"{digits}9")


def test_aliases_and_merges_of_usual_size_are_read():
    text = "one: &one {a: 1, b: [2]}\ntwo: {<<: *one, c: 3}\nthree: *one"
    assert read_yaml(text) == yaml.safe_load(text)
    assert read_yaml("") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((text, text) for text in ("1:30", "1:30:00", "1_000", "0b11", "2026-01-31", "yes", "no", "on", "=")),
        *((text, int(text)) for text in ("010", "08", "+5", "-3")),
        ("0o10", 8),
        ("0x1F", 31),
        *((text, float(text)) for text in ("1e3", "1e-3", "1.5e+3", ".5", "5.")),
        ("-.Inf", float("-inf")),
        *((text, None) for text in ("~", "null", "")),
        ("TRUE", True),
        ("tRue", "tRue"),
    ],
)
def test_plain_scalars_follow_core_schema_of_yaml_1_2(text, value):
    assert read_yaml(text) == value
    assert type(read_yaml(f"[{text}]" if text else "")) is (list if text else type(None))
    assert read_yaml(f"!!str '{text}'") == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *((f"!!int {text}", "is no int") for text in ("1:30", "1_0", "x")),
        ("!!bool yes", "is no bool"),
        ("!!float 1:30.5", "is no float"),
        ("a: !!python/object/apply:os.getcwd []", "python/object"),
    ],
)
def test_tagged_scalars_of_yaml_1_1_and_objects_are_refused(text, reason):
    with pytest.raises(yaml.YAMLError, match=reason):
        read_yaml(text)


def test_dumped_text_is_equal_in_yaml_1_1_and_1_2():
    keys = dict(
        enumerate(["1e-3", "08", "no", "0o7", "1:30", "2026-01-31", "1_0", "0x1f", "~", "plain", 1e-5, True, None])
    )
    text = dump_yaml({f"k{number}": value for number, value in keys.items()}, is_ascii=True)
    assert list(read_yaml(text).values()) == list(yaml.safe_load(text).values()) == list(keys.values())


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *(("fleet.time_budget", text) for text in ("1:30", "1:30:00", "1e2", "90", "1_000", "1h30m", "+90", "90.5")),
        *(("trials", text) for text in ("010", "1e1", "10.0", "1e-1", "yes", "1:30")),
        *(("fleet.workers", text) for text in ("010", "1e1", "2.0", "no")),
        *(("fleet.worker.gpus", text) for text in ("1", "1.0", "yes")),
        *(("training.head_learning_rate", text) for text in ("1e-3", "0.005", "1:30", "nan")),
        *(("space.mergeable", text) for text in ("true", "no", "maybe")),
        *(("budget", text) for text in ("0.5", "1e-3", "1e6", "600_000", "0.999", "1.0", "1")),
    ],
)
def test_quotes_do_not_change_the_value(key, text):
    def read(value: str) -> object:
        try:
            study = specification_of(MINIMAL, dict([parse_override(f"{key}={value}")]))
        except SpecificationError as error:
            return [line.partition("; got")[0] for line in str(error).splitlines()]
        return study.search_identity(), study.trials, study.fleet

    assert read(text) == read(f"'{text}'")
