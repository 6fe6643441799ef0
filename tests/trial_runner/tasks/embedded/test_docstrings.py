import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trial_runner.errors import TaskError
from trial_runner.tasks.embedded import docstrings
from trial_runner.tasks.embedded.docstrings import MASK, PACKAGES, docstrings_digest, mask_names, read_docstrings

SPLITS = ("train", "validation", "test")


@pytest.fixture(scope="module")
def task():
    return read_docstrings()


@pytest.mark.slow
def test_every_split_is_balanced_over_the_six_packages(task):
    assert tuple(task.splits) == SPLITS
    for split, examples in task.splits.items():
        counts = Counter(examples.labels)
        assert sorted(counts) == list(PACKAGES)
        assert len(set(counts.values())) == 1
        assert counts["ray"] >= (800 if split == "train" else 90)


@pytest.mark.slow
def test_texts_are_all_different_single_paragraphs_that_name_no_package(task):
    found = [text for examples in task.splits.values() for text in examples.columns[0]]
    assert len(found) == len({text.lower() for text in found})
    assert all(5 <= len(text.split()) <= 40 and text == " ".join(text.split()) for text in found)
    texts = " \n ".join(found)
    assert not re.search("numpy|pandas|sqlalchemy|torch|transformers|huggingface", texts, re.IGNORECASE)
    assert not re.search(r"(?<![a-z0-9])(ray|np|pd)(?![a-z0-9])", texts, re.IGNORECASE)
    assert MASK in texts
    assert "array" in texts


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Convert a NumPy array", f"Convert a {MASK} array"),
        ("See `pytorch_lightning` and torch.nn.Module", f"See `{MASK}` and {MASK}.nn.Module"),
        ("an array, tray or Rayleigh wave", "an array, tray or Rayleigh wave"),
        ("A Ray actor, ray.get, ray_start and RayTask", f"A {MASK} actor, {MASK}.get, {MASK}_start and {MASK}"),
        ("np.ndarray, pd.DataFrame; input", f"{MASK}.ndarray, {MASK}.DataFrame; input"),
        ("Hugging Face Transformers", f"{MASK} {MASK}"),
        ("a transformer of  SQLAlchemyError\n rows", f"a transformer of {MASK} rows"),
    ],
)
def test_names_are_masked_as_words_and_not_inside_ordinary_words(text, masked):
    assert mask_names(text) == masked


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write six packages of equal files; tests add to one of them."""
    for name in PACKAGES:
        (tmp_path / name / "tests").mkdir(parents=True)
        lines = [f'def f{n}():\n    """The {name[:2]}{n} function of this part."""\n' for n in range(600)]
        (tmp_path / name / "code.py").write_text("\n".join(lines))
    monkeypatch.setattr(docstrings, "package_folder", lambda name: tmp_path / name)
    return tmp_path


def test_another_process_reads_the_same_task_and_imports_no_package(package):
    script = (
        "import sys; from pathlib import Path; from trial_runner.tasks.embedded import docstrings\n"
        "docstrings.docstrings_digest()\n"
        f"docstrings.package_folder = lambda name: Path({str(package)!r}, name)\n"
        "imported = [p for p in docstrings.PACKAGES if p in sys.modules and p != 'numpy']\n"
        "print(docstrings.read_docstrings().digest(), *imported)"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == read_docstrings().digest()


def texts(task, package):
    rows = (row for split in task.splits.values() for row in zip(split.columns[0], split.labels, strict=True))
    return {text for text, label in rows if label == package}


def test_only_first_paragraphs_outside_tests_are_taken(package):
    (package / "ray" / "more.py").write_text(
        '"""The docstring of a whole module here."""\n'
        'class A:\n    r"""A class that is  documented\n    at length.\n\n    More of it."""\n'
        '    async def f(self):\n        """An asynchronous method of a class."""\n'
        'if True:\n    def g():\n        """A function under a condition here."""\n'
        'def h():\n    """Too short."""\n'
    )
    (package / "ray" / "tests" / "more.py").write_text('def t():\n    """This one is of a test."""\n')
    (package / "ray" / "broken.py").write_text('def t():\n    """This one cannot be parsed."""\n  1 +')
    for other in {*PACKAGES} - {"ray"}:  # room for all of ray's texts in each split
        names = [f'def g{n}():\n    """The {other[:2]}{n} class of that part."""\n' for n in range(100)]
        (package / other / "room.py").write_text("\n".join(names))
    extra = {text for text in docstrings.package_texts(package / "ray") if not re.match(r"The ra\d+ ", text)}
    condition, method = "A function under a condition here.", "An asynchronous method of a class."
    assert extra == {"A class that is documented at length.", method, condition}
    assert extra & texts(read_docstrings(), "ray")


def test_a_text_of_two_packages_is_left_out(package):
    shared = 'def s():\n    """Written in more than one place."""\n'
    (package / "ray" / "shared.py").write_text(shared)
    before = texts(read_docstrings(), "ray")
    (package / "torch" / "shared.py").write_text(shared.replace("Written", "WRITTEN"))
    after = read_docstrings()
    assert "Written in more than one place." in before
    assert not any("in more than one place" in text for name in ("ray", "torch") for text in texts(after, name))


def test_a_package_with_too_few_docstrings_or_none_is_one_clear_line(package, monkeypatch):
    (package / "ray" / "code.py").write_text("")
    with pytest.raises(TaskError, match=r"ray has 0\. Install it"):
        read_docstrings()
    monkeypatch.undo()
    monkeypatch.setattr(docstrings, "PACKAGES", ("no_such_package",))
    with pytest.raises(TaskError, match="needs the package no_such_package, which is not installed"):
        docstrings_digest()
