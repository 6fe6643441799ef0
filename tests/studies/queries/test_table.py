"""Tables as values: what a script, a notebook and pandas see."""

from datetime import UTC, datetime

import pytest

from studies.queries.sql import run_query
from studies.queries.summaries import study_summaries, summaries_table
from studies.queries.table import Table
from studies.records import TrialState
from studies.store.ledger import Ledger

HOSTILE = '<script>alert("x")</script>&[bold]\x1b[31m\n'


def test_print_aligns_columns_and_shows_none_as_a_dash() -> None:
    table = Table(columns=("trial", "name", "score"), rows=((3, "a", 0.85), (10, None, None)), title="two trials")
    assert str(table).splitlines() == ["two trials", "trial  name  score", "    3  a      0.85", "   10  -         -"]
    assert repr(table) == str(table)


def test_html_has_hostile_text_as_text() -> None:
    html = Table(columns=(HOSTILE,), rows=((HOSTILE,),), title=HOSTILE)._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&amp;[bold]") == 3


def test_html_gives_sentences_room_and_numbers_none() -> None:
    sentence = "a scaled parallel adapter of 12 at the FFN"
    html = Table(columns=("what", "score", "method"), rows=((sentence, 0.5, "lora"),))._repr_html_()
    assert '<th style="text-align: left; min-width: 20em">what</th>' in html
    assert '<td style="text-align: right">0.5</td><td style="text-align: left">lora</td>' in html


def test_print_sends_a_terminal_nothing_that_it_would_obey() -> None:
    text = str(Table(columns=(HOSTILE,), rows=((HOSTILE,),), title=HOSTILE))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3


def test_a_long_table_is_shown_in_part_and_kept_whole() -> None:
    table = Table(columns=("n",), rows=tuple((n,) for n in range(150)))
    assert str(table).splitlines()[-1] == "… and 50 more rows"
    assert table._repr_html_().count("<tr>") == 101
    assert len(table) == len(table.to_pandas()) == 150


def test_columns_of_pandas_are_typed_and_keep_what_is_missing() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    columns = {
        "whole": ((1, None), "Int64"),
        "real": ((0.5, None), "float64"),
        "mixed": ((1, 0.5), "float64"),
        "yes": ((True, None), "boolean"),
        "text": (("a", None), "string"),
        "nothing": ((None, None), "object"),
        "too_large": ((2**70, None), "object"),
    }
    rows = tuple(zip(*(values for values, _ in columns.values()), strict=True))
    frame = Table(columns=tuple(columns), rows=rows).to_pandas()
    expected = {name: kind for name, (_, kind) in columns.items()}
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == expected
    assert [bool(missing) for missing in frame.iloc[1].isna()] == [True, True, False, True, True, True, True]
    times = Table(columns=("at", "stamp"), rows=((now, now.isoformat()), (None, None))).to_pandas()
    assert {str(kind.tz) for kind in times.dtypes} == {"UTC"}
    assert times["at"][0] == times["stamp"][0] == now


def test_an_empty_table_has_its_columns_in_pandas() -> None:
    frame = Table(columns=("a", "b"), rows=()).to_pandas()
    assert list(frame.columns) == ["a", "b"]
    assert len(frame) == 0


def test_a_column_that_stands_twice_stays_twice(sample_storage: str) -> None:
    table = run_query(sample_storage, "select number, number from trials where number = 3")
    assert list(table.to_pandas().columns) == ["number", "number"]
    assert table.column("number") == (3,)


def test_times_of_a_query_are_times_in_pandas(sample_storage: str) -> None:
    frame = run_query(sample_storage, "select created_at, ended_at from trials").to_pandas()
    assert {str(kind.tz) for kind in frame.dtypes} == {"UTC"}
    assert frame["ended_at"].isna().any()


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(KeyError, match="no column 'scroe'; there are: trial, score"):
        Table(columns=("trial", "score"), rows=()).column("scroe")


def test_a_table_is_a_rectangle() -> None:
    with pytest.raises(ValueError, match="a row must have 2 values; got 1"):
        Table(columns=("a", "b"), rows=((1,),))


def test_members_of_enumerations_become_values() -> None:
    table = Table.of([{"state": TrialState.PRUNED}])
    assert table.to_dicts() == [{"state": "pruned"}]
    assert type(table.rows[0][0]) is str


def test_the_studies_of_a_storage_are_a_table(sample_storage: str) -> None:
    with Ledger.open(sample_storage, read_only=True) as ledger:
        table = summaries_table(study_summaries(ledger))
    (entry,) = table.to_dicts()
    assert (entry["name"], entry["complete"], entry["pruned"], entry["best_trial"]) == ("sample", 2, 1, 3)
    assert summaries_table(()).columns == table.columns


TABLE = Table(columns=("trial", "what", "score"), rows=((3, "a|b\tc", 0.5), (10, 'd,"e"', None)))


def test_a_table_is_written_as_aligned_columns_markdown_csv_and_tsv() -> None:
    assert TABLE.to_text("table") == 'trial  what   score\n    3  a|b c    0.5\n   10  d,"e"      -\n'
    assert TABLE.to_text("markdown") == (
        '| trial | what | score |\n| ---: | --- | ---: |\n| 3 | a\\|b c | 0.5 |\n| 10 | d,"e" | - |\n'
    )
    assert TABLE.to_text("csv") == 'trial,what,score\n3,a|b\tc,0.5\n10,"d,""e""",\n'
    assert TABLE.to_text("tsv") == 'trial\twhat\tscore\n3\t"a|b\tc"\t0.5\n10\t"d,""e"""\t\n'


def test_some_columns_are_taken_in_the_order_of_their_names() -> None:
    some = TABLE.of_columns(["score", "trial"])
    assert (some.columns, some.rows) == (("score", "trial"), ((0.5, 3), (None, 10)))
