"""Writes the pages of the reference from what the program says of itself; ``--check`` compares them with what is there.

``make reference`` writes them again, and the names of forms and gates that the README lacks into its table.
"""

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

import dashboards.errors
import deltaspace
import search_space.errors
import studies.errors
import trial_runner.errors
from deltaspace.commands.main import COMMANDS, cli
from search_space.backbones import FAMILIES, REFUSED
from search_space.forms import FORMS
from search_space.gates import GATES
from search_space.published import METHODS
from search_space.rules import RULES
from search_space.words.dimensions import SideDimensions
from search_space.words.ports import PORT_NAMES
from studies import records
from studies.ledger import tables as ledger_tables
from studies.ledger.tables import METADATA
from studies.ledger.views import VIEWS
from studies.ledger.views import about as about_view
from studies.study_file import Specification

FOLDER = Path(__file__).parent / "reference"
README = Path(__file__).parents[1] / "README.md"
_RECORDS = {
    "studies": records.StudyRecord,
    "confirmations": records.ConfirmationRecord,
    "trials": records.TrialRecord,
    "attempts": records.AttemptRecord,
    "readings": records.Reading,
    "examples": records.ExampleRecord,
    "artefacts": records.ArtefactRecord,
    "events": records.EventRecord,
}
"""What leaves the store of each table; its docstring says what the columns mean."""
_SIDES = ("attention_", "ffn_")
FIRST_KEYS = """A dozen keys are what most studies set; of the others the defaults are meant to be left:

```yaml
name: reviews
backbone: FacebookAI/roberta-base   # embedded, a folder, or a name on the hub
task:
  folder: reviews                   # holds train, validation and test
  text: review
  label: stars
  metric: accuracy
  max_tokens: 128
budget: 0.5%                        # of the backbone's parameters, or a number
trials: 60
training:
  steps: 400
  batch_size: 32
fleet:
  workers: auto                     # one per GPU, else one per core
  time_budget: 4h
```"""
_GENERATED = "*This page is generated from the program.*"


def page(title: str, *parts: str) -> str:
    """A page of Markdown."""
    return "\n\n".join([f"# {title}", *(part.strip("\n") for part in parts), _GENERATED]) + "\n"


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown; what stands in a cell stays on its line."""

    def line(cells: Iterable[object]) -> str:
        return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    head = list(head)
    return "\n".join([line(head), line("---" for _ in head), *map(line, rows)])


def summary(thing: object) -> str:
    """First paragraph of a docstring, as one line with Markdown's marks of code."""
    text = inspect.getdoc(thing) or ""
    return code(" ".join(text.split("\n\n")[0].split()))


def code(text: str) -> str:
    """Text of a docstring with Markdown's marks of code."""
    return text.replace("``", "`")


def attributes(cls: type) -> dict[str, str]:
    """What a docstring says of each attribute; those of bases too."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        found |= {name: code(text) for name, text in documented_names(base, "Attributes")}
    return found


def documented_names(documented: object, title: str) -> list[tuple[str, str]]:
    """Names and texts of a section of a docstring."""
    found = re.search(rf"^{title}:\n((?:    .*\n?|\n)+)", inspect.cleandoc(documented.__doc__ or ""), re.MULTILINE)
    entries = re.findall(r"^    (\w+): (.*(?:\n {6,}.*)*)", found[1], re.MULTILINE) if found else ()
    return [(name, " ".join(text.split())) for name, text in entries]


def defaults(cls: Any) -> Iterator[tuple[str, object, object]]:
    """Name, annotation and default of every field of a section; ``PydanticUndefined`` where a value must be given."""
    if issubclass(cls, BaseModel):
        for name, field in cls.model_fields.items():
            yield name, field.annotation, field.get_default(call_default_factory=True)
        return
    for one in dataclasses.fields(cls):
        default = one.default_factory() if one.default_factory is not dataclasses.MISSING else one.default
        yield one.name, one.type, PydanticUndefined if default is dataclasses.MISSING else default


def written(value: object) -> str:
    """A default as a study file would have it."""
    if value is PydanticUndefined:
        return "**required**"
    plain = yaml.safe_dump(_plain(value), default_flow_style=True, width=10_000).strip()
    return f"`{plain.removesuffix('...').strip()}`"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if _is_section(value):
        return {name: _plain(getattr(value, name)) for name, _, _ in defaults(type(value))}
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def study_file() -> str:
    """Every key of a study file."""
    sections = {name: value for name, _, value in defaults(Specification) if _is_section(value)}
    named = [(name, Specification.model_fields[name].annotation) for name in ("backbone", "task")]
    parts = [f"## The study\n\n{_keys(Specification, leaving=(*sections, 'backbone', 'task'))}"]
    for name, section in (*named, *((name, type(value)) for name, value in sections.items())):
        parts.append(f"## `{name}`\n\n{summary(section)}\n\n{_keys(section)}")
    about = (
        "A study file says what is searched, on what, and how far. Unknown keys are refused; all problems of a file "
        "are reported together, each with its key. On the command line every key can be overridden: "
        "`--set training.steps=400`."
    )
    return page("The study file", about, FIRST_KEYS, *parts)


def _is_section(value: object) -> bool:
    return isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def _keys(cls: Any, leaving: tuple[str, ...] = ()) -> str:
    meanings = attributes(cls)
    rows = [
        (f"`{name}`", written(value), meanings.get(name, ""))
        for name, _, value in defaults(cls)
        if name not in leaving and not name.startswith("_")
    ]
    return table(("key", "default", "meaning"), rows)


def commands() -> str:
    """The help of every command."""
    parts = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        with click.Context(
            command, info_name=f"deltaspace {name}", show_default=True, max_content_width=100, terminal_width=100
        ) as context:
            parts.append(f"## `{name}`\n\n```text\n{command.get_help(context)}\n```")
    about = (
        "Every command has `--help`. Results go to stdout, progress and errors to stderr; the exit status is 0 when "
        "done, 1 when failed, 2 when misused, 130 when a signal ended it.\n\n"
        "## Completion\n\n"
        "The Tab key completes commands, options and names of studies after this line, which may stand in `~/.bashrc`; "
        "of bash, 4.4 or newer is needed:\n\n"
        '```text\neval "$(_DELTASPACE_COMPLETE=bash_source deltaspace)"\n```\n\n'
        "zsh has `zsh_source` in its place; in fish it is `_DELTASPACE_COMPLETE=fish_source deltaspace | source`. "
        "Studies are those of `--storage`, else of `$DELTASPACE_STORAGE`; of a database on a server none are offered."
    )
    return page("Commands", about, *parts)


def python() -> str:
    """The names of ``import deltaspace``."""
    parts = []
    for name in deltaspace.__all__:
        thing = getattr(deltaspace, name)
        if inspect.ismodule(thing):
            parts.append(f"## `deltaspace.{name}`\n\n{summary(thing)} See [errors](errors.md).")
            continue
        parts.append(f"## `deltaspace.{name}`\n\n```text\n{_signature(name, thing)}\n```\n\n{_documented(thing)}")
        if inspect.isclass(thing):
            parts += [_member(name, member, value) for member, value in _members(thing)]
    about = "`import deltaspace` is light: a name is imported when it is first used."
    return page("Python", about, *parts)


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseModel):
        return f"{name}(**keys of a study file)"
    try:
        return f"{name}{_short(inspect.signature(thing))}"
    except (TypeError, ValueError):
        return name


def _short(signature: inspect.Signature) -> str:
    """A signature with the last word of every dotted name."""
    words = re.sub(r"<[^<>]* at 0x[0-9a-f]+>", "…", str(signature))
    return re.sub(r"\b(?:\w+\.)+(?=[A-Za-z])", "", words).replace("'", "")


def _members(cls: type) -> Iterator[tuple[str, object]]:
    package = cls.__module__.partition(".")[0]
    own = [base for base in reversed(cls.__mro__) if base.__module__.partition(".")[0] == package]
    for name, value in (one for base in own for one in vars(base).items()):
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property | classmethod)):
            yield name, value


def _member(owner: str, name: str, value: Any) -> str:
    function = value.__func__ if isinstance(value, classmethod) else value
    if isinstance(value, property):
        return f"**`{owner}.{name}`**: {summary(value)}"
    words = re.sub(r"^\((?:self|cls)(?:, )?", "(", _short(inspect.signature(function)))
    return f"**`{owner}.{name}{words}`**: {summary(function)}"


def _documented(thing: object) -> str:
    """A docstring as Markdown: its sections are lists, its examples blocks of text."""
    lines, shown = [], False
    for line in (inspect.getdoc(thing) or "").splitlines():
        is_example = line.strip().startswith(">>>")
        if is_example and not shown:
            lines += ["", "```text"]
        if shown and not line.strip():
            lines += ["```"]
            shown = False
        shown = shown or is_example
        heading = re.fullmatch(r"(\w+):", line)
        entry = re.fullmatch(r"    (\*{0,2}\w+): (.*)", line)
        if shown:
            lines.append(line.strip())
        elif heading:
            lines += [f"*{heading[1]}*", ""]
        elif entry:
            lines.append(f"* `{entry[1]}`: {code(entry[2])}")
        else:
            lines.append(code(line.strip()) if not line.startswith("     ") else f"  {code(line.strip())}")
    return "\n".join([*lines, "```"] if shown else lines)


def database() -> str:
    """The tables of the ledger."""
    parts, abouts = [], _about_tables()
    for each in METADATA.sorted_tables:
        keys = {column.name for column in each.primary_key}
        meanings = _meanings(each.name)
        rows = []
        for column in each.columns:
            refers = ", ".join(f"→ `{key.target_fullname}`" for key in column.foreign_keys)
            marks = ", ".join(word for word in ("key" if column.name in keys else "", refers) if word)
            rows.append(
                (
                    f"`{column.name}`",
                    _type(column),
                    "yes" if column.nullable else "",
                    marks,
                    meanings.get(column.name, ""),
                )
            )
        columns = table(("column", "type", "may be null", "", "meaning"), rows)
        parts.append(f"## `{each.name}`\n\n{abouts[each.name]}\n\n{columns}")
    about = (
        "The same tables and views stand in SQLite and in PostgreSQL; times are UTC. `deltaspace query` reads them: "
        "[twenty questions](../how-to/ask-the-database.md)."
    )
    tables = "The tables hold what was recorded; revisions of Alembic bring them up to date."
    return page("The database", about, "# Views", *map(_view, VIEWS), f"# Tables\n\n{tables}", *parts)


def _about_tables() -> dict[str, str]:
    """The string after each table in the source, by the name of the table."""
    found = {}
    for one, following in pairwise(ast.parse(inspect.getsource(ledger_tables)).body):
        if isinstance(one, ast.Assign) and isinstance(following, ast.Expr):
            assigned = getattr(ledger_tables, ast.unparse(one.targets[0]))
            found[getattr(assigned, "name", "")] = ast.literal_eval(following.value)
    return found


def _view(view: str) -> str:
    rows = ((f"`{name}`", meaning) for name, meaning in documented_names(VIEWS[view], "Columns"))
    return f"## `{view}` (view)\n\n{about_view(view)}\n\n{table(('column', 'meaning'), rows)}"


def _meanings(table_name: str) -> dict[str, str]:
    """What the columns of a table mean, where its record says so."""
    if table_name not in _RECORDS:
        return {}
    found = attributes(_RECORDS[table_name])
    if table_name == "trials":
        sides = attributes(SideDimensions).items()
        found |= {f"{side}{name}": text for side in _SIDES for name, text in sides}
    return found


def _type(column: Any) -> str:
    return re.sub(r"\(.*\)", "", str(getattr(column.type, "impl", column.type)) or type(column.type).__name__).lower()


def rules() -> str:
    """The rules of validity."""
    about = "A configuration that breaks a rule cannot be built; the error names the rule."
    return page(
        "Validity rules", about, table(("rule", "what holds"), ((f"`{name}`", text) for name, text in RULES.items()))
    )


def forms_and_gates() -> str:
    """Functional forms, gates and ports."""
    parts = []
    for title, registry in (("Functional forms", FORMS), ("Gates", GATES)):
        rows = [(f"`{name}`", summary(cls)) for name, cls in registry.items()]
        parts.append(f"## {title}\n\n{table(('name', 'what it is'), rows)}")
    ports = table(("in studies and formulas", "in words"), [(f"`{port}`", name) for port, name in PORT_NAMES.items()])
    parts.append(f"## Ports\n\nWhat an edit can read and write.\n\n{ports}")
    return page("Forms and gates", *parts)


def methods() -> str:
    """Published methods."""
    parts = []
    for name, method in METHODS.items():
        rows = [
            (f"`{one.alias}`", f"`{one.name}`", "" if one.default is None else f"`{one.default}`", one.meaning)
            for one in method.hyperparameters
        ]
        settings = table(("letter", "name", "default", "meaning"), rows) if rows else ""
        parts.append(f"## `{name}`\n\n{method.title}. {method.citation}.\n\n{settings}")
    about = (
        "Every method is a named point of the space. Named in a study it is resized to the budget; `NAME:letter=value` "
        "fixes what is named. `deltaspace methods --backbone X` says what is valid on a backbone."
    )
    return page("Published methods", about, *parts)


_ANY_OTHER = """## Any other

A table of ports is made of the model, if it is an encoder or a decoder: of its config's names, of the modules that call
the attention function, and of the values that pass through its linear layers and norms. It is used if the contract of
edits holds on a copy of two blocks, one by one and in packs; a port without which it holds is left out.
`deltaspace check --backbone X` says what is possible, and needs no weights. An encoder-decoder of no family above is
refused there, and when a study of it is launched. Tried on the default configs of transformers 5.23:"""
_NO_FUNCTION = "its attention calls no attention function of transformers"
OTHER_BACKBONES = (
    ("`opt`", "105 of 105", ""),
    ("`phi`", "105 of 105", ""),
    ("`starcoder2`", "105 of 105", ""),
    ("`glm`", "102 of 102", ""),
    ("`cohere`, `cohere2`", "99 of 99", ""),
    ("`exaone4`", "99 of 99", ""),
    ("`albert`", "97 of 97", "its blocks share their weights, and so their edits"),
    ("`gpt_neox`", "55 of 55", "q, k, v and what they read: one module gives them by heads in turn"),
    ("`bloom`, `codegen`, `falcon`, `xlnet`", "refused", _NO_FUNCTION),
    ("`gpt_oss`", "refused", "its attention has sinks (`s_aux`)"),
)
"""What `deltaspace check --backbone` said; tests/trial_runner/port_discovery/test_proof.py holds most of it."""


def families() -> str:
    """Backbone families."""
    rows = []
    for family in {each.name: each for each in FAMILIES.values()}.values():
        rows.append((", ".join(f"`{name}`" for name in family.model_types), code(family.summary)))
    refused = [(f"`{name}`", why) for name, why in REFUSED.items()]
    return page(
        "Backbone families",
        "A backbone is known by the entry `model_type` of its `config.json`.",
        table(("model type", "what it is"), rows),
        f"## Refused\n\n{table(('model type', 'what is in the way'), refused)}",
        _ANY_OTHER,
        table(("model type", "edits that keep the contract", "not reached, or what is in the way"), OTHER_BACKBONES),
    )


def errors() -> str:
    """The trees of errors."""
    parts = []
    for module in (search_space.errors, trial_runner.errors, studies.errors, dashboards.errors):
        tree = (inspect.getdoc(module) or "").partition("::")[2]
        parts.append(f"## `{module.__name__}`\n\n```text\n{inspect.cleandoc(tree)}\n```")
    about = (
        "Every error of deltaspace says in one line what must hold, what was got, and what to do. Each package has one "
        "root; names that are not known are `KeyError`s too, values that cannot be are `ValueError`s."
    )
    return page("Errors", about, *parts)


PAGES: Mapping[str, Callable[[], str]] = {
    "study-file": study_file,
    "commands": commands,
    "python": python,
    "database": database,
    "rules": rules,
    "forms-and-gates": forms_and_gates,
    "methods": methods,
    "families": families,
    "errors": errors,
}


def readme(text: str) -> str:
    """The README with all forms and gates: those that it lacks come before the mark that ends their row."""
    for mark, registry in (("<!-- forms -->", FORMS), ("<!-- gates -->", GATES)):
        lacking = "".join(f", `{name}`" for name in registry if f"`{name}`" not in text)
        text = text.replace(mark, f"{lacking}{mark}")
    return text


if __name__ == "__main__":
    pages = {FOLDER / f"{name}.md": make() for name, make in PAGES.items()} | {README: readme(README.read_text())}
    if "--check" in sys.argv:
        stale = [file.name for file, text in pages.items() if file.read_text() != text]
        sys.exit(f"not what the program says: {', '.join(stale)}. Run: make reference" if stale else 0)
    for file, text in pages.items():
        file.write_text(text)
