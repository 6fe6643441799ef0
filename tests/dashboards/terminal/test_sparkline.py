"""The best score as a line of text."""

from dashboards.terminal.live import sparkline


def test_it_rises_from_the_lowest_to_the_highest_level() -> None:
    line = sparkline([(1, 0.1), (4, 0.2), (8, 0.8)], until=8, width=8)
    # one character a trial: 0.1 three times, 0.2 four times (a seventh of the range), 0.8
    assert line == "▁▁▁▂▂▂▂█"


def test_it_is_as_wide_as_it_may_be_and_ends_at_the_best() -> None:
    line = sparkline([(1, 0.0), (50, 0.5), (200, 1.0)], until=200, width=10)
    assert len(line) == 10
    assert (line[0], line[-1]) == ("▁", "█")
    assert list(line) == sorted(line)


def test_what_has_not_risen_has_no_line() -> None:
    assert sparkline([], until=3, width=8) == ""
    assert sparkline([(1, 0.5)], until=9, width=8) == ""
