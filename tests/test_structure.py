"""Structure of the source tree: light imports, one error tree per package, no catch-alls, and the language."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from support.loops import each
from support.processes import ROOT, printed_by

PACKAGES = ("search_space", "trial_runner", "studies", "dashboards", "deltaspace")
HEAVY = ("torch", "transformers", "ray")
# Packages and modules that answer questions about studies at once, so must not wait for a deep-learning stack.
LIGHT = (
    "search_space",
    "studies.records",
    "studies.ledger",
    "studies.study_file",
    "dashboards",
    "trial_runner.requests",
    "trial_runner.backbones",
    "trial_runner.tasks",
)

SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
SUPPORT = sorted((ROOT / "tests" / "support").rglob("*.py"))
HELPERS = [*SUPPORT, *sorted((ROOT / "benchmarks").rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def trees_of(paths: Iterable[Path]) -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(), filename=str(path)) for path in paths}


TREES = trees_of(SOURCES)
ALL_TREES = TREES | trees_of({*HELPERS, *TESTS})
ERROR_MODULES = [f"{package}.errors" for package in PACKAGES[:-1] if (ROOT / package / "errors.py").exists()]

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module({package!r})
for module in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
    importlib.import_module(module.name)
"""
ASK_FOR_HELP = """
import sys
from deltaspace.commands.main import COMMANDS, main
for page in [[], *([name] for name in COMMANDS)]:
    if main([*page, "--help"]) != 0:
        sys.exit(f"no help for {page}")
"""
REPORT = """
print("loaded:", *sorted(set(sys.modules) & {heavy!r}))
"""


def heavy_modules_after(script: str) -> list[str]:
    """Return the heavy top-level modules that a fresh interpreter has loaded after the script."""
    printed = printed_by("-c", script + REPORT.format(heavy=set(HEAVY)))
    return printed.splitlines()[-1].removeprefix("loaded:").split()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.slow
def test_a_heavy_import_would_be_noticed():
    assert heavy_modules_after("import sys, torch") == ["torch"]


@pytest.mark.slow
@pytest.mark.parametrize("package", LIGHT)
def test_a_light_package_loads_no_deep_learning_library(package):
    assert heavy_modules_after(IMPORT_ALL.format(package=package)) == []


@pytest.mark.skipif(not (ROOT / "deltaspace/commands/main.py").exists(), reason="there is no command line")
def test_the_help_of_every_command_loads_no_deep_learning_library():
    assert heavy_modules_after(ASK_FOR_HELP) == []


@each("path", SOURCES, ids=name_of)
def test_imports_are_absolute(path):
    relative = [node.lineno for node in ast.walk(TREES[path]) if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []


def errors_of(module: ModuleType) -> dict[str, type[BaseException]]:
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, BaseException) and value.__module__ == module.__name__
    }


@pytest.mark.parametrize("name", ERROR_MODULES)
def test_the_errors_of_a_package_have_one_root(name):
    errors = errors_of(importlib.import_module(name)).values()
    roots = [error for error in errors if not any(base in errors for base in error.__bases__)]
    assert [root.__bases__ for root in roots] == [(Exception,)]
    assert all(issubclass(error, roots[0]) for error in errors)


@pytest.mark.parametrize("name", ERROR_MODULES)
def test_every_error_is_drawn_in_the_tree_of_its_module(name):
    module = importlib.import_module(name)
    drawn = set((module.__doc__ or "").split())
    assert set(errors_of(module)) <= drawn


def test_errors_are_defined_in_the_errors_module_only():
    others = [
        f"{name_of(path)}:{node.lineno} {node.name}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and path.name != "errors.py"
    ]
    assert others == []


def test_no_module_is_a_catch_all():
    catch_alls = {"utils", "util", "helpers", "helper", "common", "misc"}
    names = {part for path in SOURCES for part in (*path.parent.relative_to(ROOT).parts, path.stem)}
    assert names & catch_alls == set()


def test_no_test_folder_is_a_package():
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_imports_point_one_way():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


FIELD_NOUNS = {"decoding", "encoding", "logging", "pruning", "reading", "sharding", "training"}


def test_no_class_name_stands_for_two_things():
    places: dict[str, list[str]] = {}
    for path in (*SOURCES, *HELPERS):
        for node in ast.walk(ALL_TREES[path]):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(f"{name_of(path)}:{node.lineno}")
    assert {name: lines for name, lines in places.items() if len(lines) > 1} == {}


SAME_MEANING = frozenset(  # a function of the Python interface has the name of the one that does its work
    {"check", "count", "launch", "main", "plan", "predict", "shape_of", "studies", "train", "upgrade"}
)


@pytest.mark.parametrize(
    ("paths", "shared"), [(SOURCES, SAME_MEANING), (SUPPORT, frozenset({"main"}))], ids=["product", "support"]
)
def test_no_function_or_alias_has_two_meanings(paths, shared):
    places: dict[str, dict[str, str]] = {}
    for path in paths:
        if name_of(path).startswith("deltaspace/commands/"):  # a command is named like the function that it calls
            continue
        for node in ALL_TREES[path].body:
            if isinstance(node, ast.FunctionDef):
                name, text = node.name, name_of(path)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, text = node.targets[0].id, ast.unparse(node.value)
            else:
                continue
            if not name.startswith("_") and not name.isupper():
                places.setdefault(name, {})[f"{name_of(path)}:{node.lineno}"] = text
    several = {name: sorted(found) for name, found in places.items() if len(set(found.values())) > 1}
    assert {name: found for name, found in several.items() if name not in shared} == {}
    assert sorted(shared - several.keys()) == [], "no longer needed"


def test_modules_are_nouns():
    names = {part for path in SOURCES for part in (*path.parent.relative_to(ROOT).parts, path.stem)}
    assert {name for name in names if name.endswith("ing") and name.split("_")[-1] not in FIELD_NOUNS} == set()


def test_no_file_is_longer_than_400_lines():
    assert {name_of(path): n for path in SOURCES if (n := len(path.read_text().splitlines())) > 400} == {}


# The language of the code; CONTRIBUTING.md has the rules. Places where a rule is wrong about a sentence are exceptions.
LANGUAGE_EXCEPTIONS: frozenset[str] = frozenset()
NAME_EXCEPTIONS: frozenset[str] = frozenset()
NOT_IMPERATIVE = re.compile(
    "an?|the|what|whether|who|how|of|one|two|each|every|all|any|no|none|as|in|on|at|for|from|with|by|to|that|this|those|"
    "these|where|when|which|whose|if|its|their|it|they|both|n?either|more|most|fewer|less|another|others?|same|such|some|"
    "many|few|here|there|then|only|also|rows|names|values|texts"
)
PREPOSITIONS = "of|in|on|at|for|from|with|by|to|as|before|after|beside|behind|without|within|under|over"
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
SPEECH = (
    "told|tells?|telling|heard|hears?|asked|asks?|knows?|known|sees?|saw|seen|believes?|believed|wish(es)?|says?|said|saying|"
    "nobody|somebody|everybody|hungry|teach(es)?|taught|learns? of|heeds?|luck|lucky"
)
ODD_NAMES = (
    "genes?|genome|belie(f|ve|ver)|drawer|mover|luck|lessons|opening|course|prospects?|told|hear|heard|heed|beside|wish|"
    "wishes|taught|teach|asked|looking|telling|apart|elsewhere|nothing|somewhere|anywhere|well|met|ways|sayings?|said|says|"
    "known|seen|lend|lent|likes|alike|takeable|door|desk|hungry|"
    "what|who|whose|whoever|whatever|nobody|somebody|everybody"
)


def is_imperative(word: str) -> bool:
    """Return whether a docstring's first word can be a verb in the imperative, judged by its form."""
    plain = re.sub(r"[^a-z-]", "", word.lower())
    third_person = plain.endswith("s") and not plain.endswith(("ss", "us", "is"))
    return (
        bool(plain) and not NOT_IMPERATIVE.fullmatch(plain) and not plain.endswith(("ed", "ing")) and not third_person
    )


def is_property(node: ast.AST) -> bool:
    names = {getattr(one, "id", getattr(one, "attr", "")) for one in getattr(node, "decorator_list", ())}
    return bool(names & {"property", "cached_property", "setter"})


def rules_broken(node: ast.AST, docstring: str) -> list[str]:
    """Return the names of the rules of docstrings that one breaks."""
    first = re.split(r"(?<=[.;:])\s|\n\n", docstring.strip(), maxsplit=1)[0]
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node)
    broken = {
        "begins with a verb": is_function and not is_imperative(first.split()[0]),
        "no what or who": re.search(r"\b(what|who|whoever|whatever)\b", first, re.IGNORECASE),
        "no personification": re.search(rf"\b({SPEECH})\b", first, re.IGNORECASE),
        "Args: begin with a noun": re.search(
            rf"^ {{4,}}\w+: ({PREPOSITIONS})\b", docstring, re.MULTILINE | re.IGNORECASE
        ),
    }
    return [rule for rule, is_broken in broken.items() if is_broken]


def docstrings_of(path: Path, tree: ast.Module) -> Iterator[tuple[str, ast.AST, str]]:
    for node in ast.walk(tree):
        is_documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if is_documented and (docstring := ast.get_docstring(node)):
            yield f"{name_of(path)}: {getattr(node, 'name', 'module')}", node, docstring


def test_docstrings_follow_the_rules_of_the_language():
    broken = {
        place: rules
        for path, tree in ALL_TREES.items()
        for place, node, docstring in docstrings_of(path, tree)
        if (rules := rules_broken(node, docstring))
    }
    assert {place: rules for place, rules in broken.items() if place not in LANGUAGE_EXCEPTIONS} == {}
    assert sorted(LANGUAGE_EXCEPTIONS - broken.keys()) == [], "no longer needed"
    assert len(LANGUAGE_EXCEPTIONS) <= 20


@pytest.mark.parametrize(
    ("docstring", "rules"),
    [
        ("Return the score.", []),
        ("The score.", ["begins with a verb"]),
        ("Returns the score.", ["begins with a verb"]),
        ("Return what is scored.", ["no what or who"]),
        ("Return the score that it knows.", ["no personification"]),
        ("Return the score.\n\nArgs:\n    step: Of the trial.", ["Args: begin with a noun"]),
        ("Return the score.\n\nArgs:\n    step: Number of steps.", []),
    ],
)
def test_broken_rules_of_the_language_are_found(docstring, rules):
    (function,) = ast.parse("def score(): ...").body
    assert rules_broken(function, docstring) == rules


def names_given_in(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the names of the module, its functions and classes, and the attributes that it assigns."""
    yield path.stem
    for node in ast.walk(tree):
        if isinstance(node, NAMED):
            yield re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node.name).lower()
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_names_are_nouns_and_verbs_of_the_field():
    odd = re.compile(rf"(?:^|_)({ODD_NAMES})(?:$|_)")
    names = {f"{name_of(path)}: {name}" for path, tree in ALL_TREES.items() for name in names_given_in(path, tree)}
    assert {name for name in names if odd.search(name.partition(": ")[2])} == NAME_EXCEPTIONS


def test_names_of_tests_have_at_most_70_characters():
    names = [node.name for path in TESTS for node in ast.walk(ALL_TREES[path]) if isinstance(node, ast.FunctionDef)]
    assert [name for name in names if name.startswith("test_") and len(name) > 70] == []


# Tests use public names of the product: a use of a private one, by place and name, is an exception with its reason.
PRIVATE_USES: dict[str, str] = {}
OWN = ("self", "cls")
BY_NAME = ("setattr", "delattr", "getattr", "hasattr", "patch", "object", "attrgetter", "methodcaller")


def is_private(name: str) -> bool:
    """Return whether a name has one underscore before it; those after it as well are protocols, as of IPython."""
    return re.fullmatch(r"_[^\W_]\w*(?<!_)", name) is not None


def is_own(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in OWN


def names_defined_in(tree: ast.Module) -> Iterator[str]:
    """Yield the functions and classes of a module, the variables of both, and the attributes that methods assign."""
    for node in ast.walk(tree):
        if isinstance(node, NAMED):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "object.__setattr__" and is_own(node.args[0]):
            yield str(getattr(node.args[1], "value", ""))
        if isinstance(node, ast.Module | ast.ClassDef):
            plain = [one for one in node.body if not isinstance(one, NAMED)]
            found = [part for one in plain for part in ast.walk(one) if isinstance(part, ast.Name)]
            yield from (part.id for part in found if isinstance(part.ctx, ast.Store))


def names_used_in(tree: ast.Module) -> Iterator[str]:
    """Yield attributes of other objects, names imported from the product, and names in texts of calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from (text.rpartition(".")[2] for text in texts)


def test_tests_use_no_private_name_of_the_product():
    private = {name for tree in TREES.values() for name in names_defined_in(tree) if is_private(name)}
    uses = [f"{name_of(path)}: {name}" for path in TESTS for name in names_used_in(ALL_TREES[path]) if name in private]
    assert sorted(set(uses) - PRIVATE_USES.keys()) == []
    assert sorted(PRIVATE_USES.keys() - set(uses)) == [], "no longer needed"
    assert len(uses) <= 10


@pytest.mark.parametrize(
    "use",
    [
        "runner._plan",
        "runner.pack()._plan()",
        "runner._plan = 1",
        "from studies.study import _plan",
        "monkeypatch.setattr(studies.study, '_plan', 1)",
        "monkeypatch.setattr('studies.study._plan', 1)",
        "patch.object(Study, '_plan')",
        "getattr(study, '_plan')",
    ],
)
def test_uses_of_private_names_are_found(use):
    assert "_plan" in names_used_in(ast.parse(use))


@pytest.mark.parametrize("use", ["self._plan", "_plan(1)", "from support.plans import _plan", "row['_plan']"])
def test_other_names_with_an_underscore_are_no_uses(use):
    assert "_plan" not in names_used_in(ast.parse(use))


@pytest.mark.parametrize(
    "source",
    [
        "def _plan(): ...",
        "class _plan: ...",
        "class A:\n    async def _plan(self): ...",
        "class A:\n    _plan: int = 1",
        "class A:\n    def __init__(self):\n        self._plan, self.steps = 1, 2",
        "class A:\n    def __init__(self):\n        object.__setattr__(self, '_plan', 1)",
        "if True:\n    _plan = 1",
        "_plan, steps = 1, 2",
    ],
)
def test_definitions_of_private_names_are_found(source):
    assert "_plan" in names_defined_in(ast.parse(source))


@pytest.mark.parametrize("source", ["Trainer._plan = 1", "def plan():\n    _plan = 1", "from ray import _plan"])
def test_names_of_others_are_not_defined_by_the_product(source):
    assert "_plan" not in names_defined_in(ast.parse(source))


@pytest.mark.parametrize(
    ("name", "expected"), [("_a", True), ("_A_B", True), ("_", False), ("__a", False), ("_repr_html_", False)]
)
def test_one_underscore_before_a_name_makes_it_private(name, expected):
    assert is_private(name) is expected


# Private names of dependencies that the product uses, by module and name, each with its reason; a new one fails.
DOCUMENTED = {"_exit"}  # of os
PRIVATE_NAMES_OF_DEPENDENCIES: dict[str, str] = {
    "studies/backends/placement.py: _private": "nodes that drain are nowhere else",
    "studies/backends/scaling_policy.py: _actor_task_failed": "Tune ends all workers after one ran out of memory",
    "trial_runner/deltas/whole_model/swap.py: _buffers": "setattr costs a training step time",
    "trial_runner/deltas/whole_model/swap.py: _parameters": "setattr takes Parameters, functional_call calls forward",
    "trial_runner/export/loader.py: _attn_implementation": "set_attn_implementation has no reader",
    "trial_runner/linear_layers.py: _keep_in_fp32_modules": "layers that transformers itself leaves as they are",
    "trial_runner/packs/memory.py: _python_dispatch": "the mode that sees every operation has no public module",
    "trial_runner/packs/memory.py: _subclasses": "the mode of tensors without data has no public module",
}


def private_names_in(tree: ast.Module) -> Iterator[str]:
    """Yield the private attributes, modules, arguments and imported names, and those that calls give as a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            yield from (part for module in modules for part in module.split("."))
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            yield from (text.rpartition(".")[2] for text in texts)


def test_private_names_of_dependencies_are_listed_with_reasons():
    uses = {
        f"{name_of(path)}: {name}"
        for path, tree in TREES.items()
        for name in {*private_names_in(tree)} - {*names_defined_in(tree)} - DOCUMENTED
        if is_private(name)
    }
    assert sorted(uses - PRIVATE_NAMES_OF_DEPENDENCIES.keys()) == []
    assert sorted(PRIVATE_NAMES_OF_DEPENDENCIES.keys() - uses) == [], "no longer needed"
    assert len(PRIVATE_NAMES_OF_DEPENDENCIES) <= 8


@pytest.mark.parametrize(
    "use",
    [
        "ray._private",
        "import ray._private",
        "from ray._private import worker",
        "from ray import _private",
        "ray.init(_private=1)",
        "getattr(ray, '_private')",
    ],
)
def test_private_names_of_dependencies_are_found(use):
    assert "_private" in private_names_in(ast.parse(use))
