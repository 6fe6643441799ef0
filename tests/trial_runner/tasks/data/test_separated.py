"""Files of separated values, cell by cell: nothing is moved, lost or turned into another value."""

import tracemalloc

import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks.data import separated
from trial_runner.tasks.data.formats import opened_rows, reading_notes
from trial_runner.tasks.data.text_file import LONGEST_LINE

READ = {
    "zeros": ("text,label\na,007\nb,7\n", [["a", "007"], ["b", "7"]]),
    "words for nothing": ("text,label\nNA,null\nNone,nan\n", [["NA", "null"], ["None", "nan"]]),
    "backslashes": ('text,label\n"a \\"b, c\\" \\n d",x\n', [['a "b, c" \\n d', "x"]]),
    "backslashes in paths": ('text,label\n"C:\\",x\nC:\\new,y\n', [["C:\\", "x"], ["C:\\new", "y"]]),
    "spreadsheet": ("text;label;;\r\na, b;1;;\r\n\r\nc;2;;\r\n", [["a, b", "1"], ["c", "2"]]),
    "cells at the end": ("text;label\na;1;;\nb;2;;\n", [["a", "1"], ["b", "2"]]),
    "short header": ("text;label;;\na;1\nb;2\n", [["a", "1"], ["b", "2"]]),
    "decimal comma": ("text;label\na;3,5\nb, c;4,0\n", [["a", "3,5"], ["b, c", "4,0"]]),
    "a declared separator": ("sep=;\r\ntext;label\r\na, b;1\r\n", [["a, b", "1"]]),
    "a declared odd separator": ("SEP=~\ntext~label\na,b~1\n", [["a,b", "1"]]),
    "semicolons in names": ("text,a;b\nx,1\ny,2\n", [["x", "1"], ["y", "2"]]),
    "commas in the header": ("text, as it is;label\na;1\nb;2\n", [["a", "1"], ["b", "2"]]),
    "more commas than separators": ("text;label\na, b, c;1\nd, e, f;2\n", [["a, b, c", "1"], ["d, e, f", "2"]]),
    "bars": ("text|label\na, b|1\n", [["a, b", "1"]]),
    "old line ends": ("text,label\ra,1\rb,2\r", [["a", "1"], ["b", "2"]]),
    "lines within": ('text,label\n"a\n\nb",1\n', [["a\n\nb", "1"]]),
}
REFUSED = {
    "a comma": ("text,label\nfine,a\nno, more,b\n", "line 3 has 3 cells where the first line names 2. Put quotes"),
    "commas in all": ("text,label\na, b,x\nc, d,y\n", "line 2 has 3 cells"),
    "an index": ("text,label\n0,a,x\n1,b,y\n", "line 2 has 3 cells"),
    "a short row": ("text,label\na,x\nb\n", "line 3 has 1 cells"),
    "a comma at one end": ("text,label\nno, more,\na,b\n", "line 3 has 2 cells|line 2 has 3 cells"),
    "a declared separator": ("sep=;\ntext;label\na;1\nb;c;2\n", "line 4 has 3 cells where the first line names 2"),
    "after lines": ('text,label\n"a\nb",x\nc,d,e\n', "line 4 has 3 cells"),
    "an open quote": ('text,label\na,b\n"c,d\ne,f\n', "the quote that opens in line 3 never ends"),
    "an open quote later": ('text,label\n"c\nd","e\nf\n', "the quote that opens in line 3 never ends"),
    "quotes within": ('text,label\n"he" said,b\n', "line 2 has a quoted text that goes on after its quote"),
    "no name": (
        "text;label;;\na;1;;\nb;2;3;\n",
        r"line 3 has values in column 3, .* Delete the 2 separators",
    ),
}


def cells(folder, content, name="train.csv", encoding="utf-8"):
    (folder / name).write_bytes(content.encode(encoding))
    with opened_rows((folder / name,), "train") as rows:
        return [list(row.values()) for row in rows]


@pytest.mark.parametrize("case", READ)
def test_cells_are_read_as_they_stand(case, tmp_path):
    content, expected = READ[case]
    assert cells(tmp_path, content) == expected


@pytest.mark.parametrize("case", REFUSED)
def test_uneven_row_is_refused_with_its_line(case, tmp_path):
    content, message = REFUSED[case]
    with pytest.raises(TaskError, match=message) as refused:
        cells(tmp_path, content)
    assert "train.csv" in str(refused.value)


@pytest.mark.parametrize(("encoding", "note"), [("cp1252", "cp1252"), ("utf-16", "utf-16"), ("utf-8-sig", None)])
def test_encoding_of_spreadsheet_is_read_and_reported(encoding, note, tmp_path):
    expected = [["Grüße – 5 €", "é"]]
    assert cells(tmp_path, "text;label\nGrüße – 5 €;é\n", encoding=encoding) == expected
    assert reading_notes((tmp_path / "train.csv",)) == ((f"train.csv: read as {note}, not UTF-8",) if note else ())


def test_half_a_character_is_refused_with_its_line(tmp_path):
    (tmp_path / "train.csv").write_bytes(b"text,label\nfine,a\na boat \xed\xa0\xbd,b\n")
    with pytest.raises(TaskError, match=r"line 3 of train\.csv must have whole characters; got \\ud83d, half of one"):
        opened_rows((tmp_path / "train.csv",), "train").__enter__()


def test_late_letters_do_not_change_how_labels_are_read(tmp_path):
    content = "text,label\n" + "".join(f"t{row},{row % 3 if row < 10_500 else 'A'}\n" for row in range(12_000))
    found = cells(tmp_path, content)
    assert (len(found), found[0], found[-1]) == (12_000, ["t0", "0"], ["t11999", "A"])


def test_overlong_line_is_refused(tmp_path):
    with pytest.raises(TaskError, match="lines of at most 16,777,216 bytes"):
        cells(tmp_path, "text,label\n" + "x" * (LONGEST_LINE + 1))
    rows = "a line of a text that never ends\n" * (LONGEST_LINE // 30)
    with pytest.raises(TaskError, match="the quote that opens in line 2 never ends"):
        cells(tmp_path, 'text,label\n"' + rows)


def test_open_quote_over_short_lines_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(separated, "LONGEST_LINE", 400_000)
    (tmp_path / "train.csv").write_text('text,label\n"' + "a\n" * 300_000)
    tracemalloc.start()
    with pytest.raises(TaskError, match="the quote that opens in line 2 never ends"):
        separated.read_separated(tmp_path / "train.csv")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # four bytes a character, and what growing takes; 200,000 lines alone are 10 MB
    assert most < 8_000_000
