import pytest

from studies.analysis.visible import visible, visible_json

OBEYED = [*range(9), *range(11, 32), *range(127, 160), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)]
OBEYED += [*range(0x2066, 0x206A), 0xD800, 0xDFFF, 0xFEFF]


@pytest.mark.parametrize("write", [visible, visible_json])
def test_terminal_control_codes_are_escaped(write):
    for code in OBEYED:
        written = write(f"a{chr(code)}b")
        assert written.isascii()
        assert written.isprintable()
        assert written != "ab"


def test_escaped_text_names_the_code_points():
    assert visible("\x1b[31m\u202e") == r"\x1b[31m\u202e"
