"""YAML that may be anybody's: bombs of aliases, depths and digits are refused, and what is usual is read."""

import pytest
import yaml

from studies.errors import SpecificationError
from studies.study_file.parser import parse_override, read_specification
from studies.study_file.yaml_text import MOST_DIGITS, MOST_LEVELS, MOST_VALUES, read_yaml


def bomb(levels: int, each: int = 10) -> str:
    """``each ** levels`` values, of as many lines as levels."""
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
    "digits by sixty": ("a: 1" + ":59" * 30_000, "a number of more than 100 digits"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_on_one_line_as_a_file_and_as_an_override(name, tmp_path):
    text, said = BOMBS[name]
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(SpecificationError, match=said) as caught:
        read_specification(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    if "\n" not in text:
        with pytest.raises(SpecificationError, match=said):
            parse_override(f"trials={text}")


def test_limits_are_what_is_still_read():
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


def test_tags_that_make_objects_are_refused():
    with pytest.raises(yaml.YAMLError, match="python/object"):
        read_yaml("a: !!python/object/apply:os.getcwd []")
