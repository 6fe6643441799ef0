"""JSON that may be anybody's."""

import pytest

from search_space.json_text import MAX_DIGITS, read_json_text


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000, "9" * (MAX_DIGITS + 1), "{", ""]
)
def test_invalid_json_is_a_value_error(text):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - its text is the parser's
        read_json_text(text)
    assert len(str(caught.value)) < 200


def test_valid_json_is_read():
    assert read_json_text('{"a": [1, 2.5, "x", null, -3]}') == {"a": [1, 2.5, "x", None, -3]}
    assert read_json_text("9" * MAX_DIGITS) == 10**MAX_DIGITS - 1
