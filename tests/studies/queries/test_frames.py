"""Frames of pandas: which columns are categories, and which stay what they are."""

from typing import Any

from studies.queries.frames import frame
from studies.queries.table import Table
from studies.records import TrialState


def kinds(columns: tuple[str, ...], *rows: tuple[object, ...]) -> list[str]:
    return [str(kind) for kind in frame(Table(columns=columns, rows=rows)).dtypes]


def test_words_are_categories_in_their_order_and_others_follow_by_the_alphabet() -> None:
    found: Any = frame(Table(columns=("state", "ffn_heads"), rows=(("pruned", "z"), ("complete", None), (None, "b"))))
    assert list(found["state"].cat.categories) == [state.value for state in TrialState]
    assert list(found["ffn_heads"].cat.categories) == ["single", "key_value_heads", "query_heads", "b", "z"]
    assert found["state"].isna().sum() == found["ffn_heads"].isna().sum() == 1


def test_a_side_without_words_is_a_category_and_numbers_of_that_name_are_numbers() -> None:
    assert kinds(("attention_form", "scale", "form"), (None, 4.0, 3)) == ["category", "float64", "Int64"]


def test_columns_of_the_same_name_stay_as_they_are() -> None:
    assert kinds(("state", "state"), ("pruned", "complete")) == ["string", "string"]


def test_a_frame_knows_whether_it_was_cut() -> None:
    assert frame(Table(columns=("n",), rows=((1,),), is_cut=True)).attrs == {"is_cut": True}
    assert frame(Table(columns=("n",), rows=())).attrs == {"is_cut": False}
