"""What tests of several packages share: storages (SQLite, and a PostgreSQL of their own) and tiny backbones."""

import json
import os
import shutil
import string
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from search_space.backbones import shape_of
from search_space.space.space import SearchSpace
from studies.search.candidates import new_trial
from studies.search.proposer import Proposal
from studies.store.ledger import Ledger
from studies.store.records import ArtefactRecord, NewStudy, NewTrial, Outcome, ReadingRecord, TrialState

BACKBONES = Path(__file__).parent / "data" / "backbones"
BUDGET = 600_000

PUBLISHED = ("mam_adapter", "lora_qv", "bitfit")


class FixedTrial:
    """Proposes one of the choices by index and a fixed place in every range."""

    def __init__(self, index: int) -> None:
        self.index = index

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        return choices[self.index % len(choices)]

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        return low + (high - low) * (1 + self.index) / 10


@pytest.fixture(scope="session")
def sample_trials() -> tuple[NewTrial, ...]:
    """Three published methods and three proposals, on RoBERTa-base."""
    shape = shape_of(json.loads((BACKBONES / "roberta_base" / "config.json").read_text()))
    space = SearchSpace(shape=shape, budget=BUDGET)
    candidates = [space.suggest_published(name, FixedTrial(0)) for name in PUBLISHED]
    candidates += [space.suggest(FixedTrial(index)) for index in range(3)]
    return tuple(
        new_trial(Proposal(number=number, candidate=candidate), shape, study_seed=0, head_parameters=1538)
        for number, candidate in enumerate(candidates)
    )


@pytest.fixture(scope="session")
def sample_storage(sample_trials: tuple[NewTrial, ...], tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a storage with the study ``sample``. Trials 0 to 5: complete .80, pruned, failed, complete .85,
    running, queued.
    """
    url = f"sqlite:///{tmp_path_factory.mktemp('storage') / 'sample.db'}"
    study = NewStudy(
        name="sample",
        specification={"name": "sample", "task": {"name": "docstrings", "folder": None}, "trials": 8},
        backbone=str(BACKBONES / "roberta_base"),
        backbone_parameters=124_645_632,
        budget_parameters=BUDGET,
        metric="accuracy",
        seed=0,
    )
    complete, pruned, failed = TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAILED
    with Ledger.open(url) as ledger:
        key = ledger.create_study(study).id
        epoch = ledger.take_over(key, "keeper")
        ledger.add_trials(key, epoch, sample_trials[:5], worker="worker-0")
        ledger.add_trials(key, epoch, sample_trials[5:])
        first = [reading(0, 25, 0.60, rung=0), reading(0, 200, 0.80)]
        delta = ArtefactRecord(trial=0, kind="delta", step=200, path="/snapshots/0", sha256="00" * 32, size_bytes=1234)
        ledger.settle(key, epoch, 0, 1, readings=first, artefact=delta, outcome=Outcome(state=complete, score=0.80))
        why = "rung 0 (25 steps): 0.55 below the cut 0.6"
        ledger.settle(
            key, epoch, 1, 1, readings=[reading(1, 25, 0.55, rung=0)], outcome=Outcome(state=pruned, reason=why)
        )
        ledger.settle(key, epoch, 2, 1, outcome=Outcome(state=failed, reason="loss is NaN at step 3"))
        third = [reading(3, 25, 0.65, rung=0), reading(3, 200, 0.85)]
        ledger.settle(key, epoch, 3, 1, readings=third, outcome=Outcome(state=complete, score=0.85))
        ledger.settle(key, epoch, 4, 1, readings=[reading(4, 25, 0.70, rung=0)])
        ledger.record_event(key, "worker", "worker-0 was lost", trial=4)
    return url


def reading(trial: int, step: int, score: float, *, rung: int | None = None) -> ReadingRecord:
    return ReadingRecord(
        trial=trial,
        step=step,
        attempt=1,
        score=score,
        metrics={"accuracy": score, "validation_loss": 1 - score},
        train_loss=0.5,
        seconds=2.5,
        rung=rung,
    )


class PostgresServer:
    """A PostgreSQL of the tests' own: a new cluster in a temporary folder, reached over a socket in it."""

    def __init__(self) -> None:
        self.programs = postgres_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="dspg-", dir="/tmp"))  # A socket's path must be short.
        self.before: list[str] = []
        if os.geteuid() == 0:  # The server refuses to run as root.
            self.before = ["runuser", "-u", "postgres", "--"]
            shutil.chown(self.folder, "postgres")
        self.count = 0
        self.call("initdb", "-U", "deltaspace", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D", self.data)
        self.start()

    @property
    def data(self) -> str:
        return str(self.folder / "data")

    def call(self, program: str, *arguments: str) -> None:
        command = [*self.before, str(self.programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            pytest.fail(f"{program} failed: {done.stderr.strip()} {done.stdout.strip()}", pytrace=False)

    def start(self) -> None:
        # Without fsync a database is made and dropped quickly; only a crash of the machine could tell.
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=40 -c fsync=off"
        log = str(self.folder / "log")
        self.call("pg_ctl", "-D", self.data, "-l", log, "-o", options, "-w", "start")

    def stop(self, how: str = "fast") -> None:
        self.call("pg_ctl", "-D", self.data, "-m", how, "-w", "stop")

    def url(self, database: str) -> str:
        return f"postgresql://deltaspace@/{database}?host={self.folder}"

    def run_sql(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def new_database(self) -> str:
        self.count += 1
        self.run_sql(f"CREATE DATABASE test_{self.count}")
        return f"test_{self.count}"

    def drop_database(self, name: str) -> None:
        self.run_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def postgres_programs() -> Path:
    """The folder of initdb and pg_ctl."""
    folders = [Path(found).resolve().parent for found in [shutil.which("pg_ctl")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    pytest.fail("these tests start a PostgreSQL of their own; run: apt-get install postgresql", pytrace=False)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, for the whole session."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """URL of an empty PostgreSQL database of the test's own."""
    name = postgres_server.new_database()
    yield postgres_server.url(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of a storage that does not exist yet (SQLite) or is empty (PostgreSQL): the test runs on both."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path / 'ledger.db'}"


_ENCODER = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 66,
    "initializer_range": 0.1,
}
_DISTILBERT = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32, "max_position_embeddings": 66}
_ENCODER_DECODER = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 66,
    "init_std": 0.1,
}
_T5 = {"d_model": 16, "num_layers": 2, "num_heads": 2, "d_kv": 8, "d_ff": 32}
_GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 32, "n_positions": 66, "initializer_range": 0.1}
_DECODER = _ENCODER | {"num_attention_heads": 4, "num_key_value_heads": 2}
_BERT_RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob")
_BART_RATES = ("dropout", "attention_dropout")


@dataclass(frozen=True)
class TinyFamily:
    """How a tiny backbone of a family is made: entries of its config, which special tokens its tokenizer has, and how
    far its weights are from those of a fresh model (whose biases are 0 and gains 1).
    """

    model_type: str
    tokens: str
    rates: tuple[str, ...]
    sizes: dict[str, object]
    language_model: str | None = None
    noise: float = 0.1


TINY_FAMILIES = {
    # As in every RoBERTa checkpoint, the first pad_token_id + 1 position rows are never used.
    "roberta": TinyFamily("roberta", "roberta", _BERT_RATES, _ENCODER | {"type_vocab_size": 1}),
    "bert": TinyFamily("bert", "bert", _BERT_RATES, _ENCODER),
    "distilbert": TinyFamily("distilbert", "bert", _BART_RATES, _DISTILBERT | {"initializer_range": 0.1}),
    "electra": TinyFamily("electra", "bert", _BERT_RATES, _ENCODER | {"embedding_size": 16}),
    "bart": TinyFamily("bart", "roberta", _BART_RATES, _ENCODER_DECODER, "Seq2SeqLM"),
    "mbart": TinyFamily("mbart", "roberta", _BART_RATES, _ENCODER_DECODER, "Seq2SeqLM"),
    "marian": TinyFamily("marian", "marian", _BART_RATES, _ENCODER_DECODER, "Seq2SeqLM"),
    "t5": TinyFamily("t5", "t5", ("dropout_rate",), _T5, "Seq2SeqLM", noise=0.3),
    "t5_gated": TinyFamily(
        "t5", "t5", ("dropout_rate",), _T5 | {"d_kv": 6, "feed_forward_proj": "gated-gelu"}, "Seq2SeqLM", noise=0.6
    ),
    "gpt2": TinyFamily("gpt2", "gpt2", ("resid_pdrop", "embd_pdrop", "attn_pdrop"), _GPT2, "CausalLM"),
    "llama": TinyFamily("llama", "gpt2", ("attention_dropout",), _DECODER, "CausalLM"),
    "qwen2": TinyFamily("qwen2", "gpt2", ("attention_dropout",), _DECODER | {"tie_word_embeddings": True}, "CausalLM"),
    "qwen3": TinyFamily(
        "qwen3", "gpt2", ("attention_dropout",), _DECODER | {"head_dim": 6, "tie_word_embeddings": True}, "CausalLM"
    ),
}
_SPECIAL = {
    "roberta": {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"},
    "bert": {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"},
    "marian": {"eos": "</s>", "unk": "<unk>", "pad": "<pad>"},
    "t5": {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"},
    "gpt2": {"eos": "<|endoftext|>", "unk": "<|unknown|>"},
}
_TEMPLATES = {
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    "bert": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "marian": ("$A </s>", "$A </s> $B </s>"),
    "t5": ("$A </s>", "$A </s> $B </s>"),
    "gpt2": ("$A", "$A $B"),
}


class TinyBackbone(Protocol):
    """What the fixture ``tiny_backbone`` is."""

    def __call__(self, family: str, dropout: float = 0.0) -> Path: ...


class TinyLanguageModel(Protocol):
    """What the fixture ``tiny_language_model`` is."""

    def __call__(self, family: str, dtype: str = "float32") -> Any: ...


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> TinyBackbone:
    """Makes the folder of a backbone (config, weights, tokenizer) of a family: a key of ``TINY_FAMILIES``.

    Encoders are stored without a head, the others with that of their language model; decoders have no padding token.
    The folder is shared by all tests that ask for the same one; copy it to change it.
    """

    @cache
    def make(family: str, dropout: float = 0.0) -> Path:
        folder = tmp_path_factory.mktemp(f"tiny-{family}")
        _save_model(TINY_FAMILIES[family], dropout, folder)
        _save_tokenizer(TINY_FAMILIES[family].tokens, folder)
        return folder

    return make


@pytest.fixture(scope="session")
def tiny_language_model(tiny_backbone: TinyBackbone) -> TinyLanguageModel:
    """Loads the language model of a tiny backbone anew, frozen, with the attention function that edits live in."""

    def load(family: str, dtype: str = "float32") -> Any:
        import transformers

        from trial_runner.attachment.attention import ATTENTION, register_attention
        from trial_runner.huggingface import quiet_transformers

        register_attention()
        model_class = getattr(transformers, f"AutoModelFor{TINY_FAMILIES[family].language_model}")
        with quiet_transformers():
            model = model_class.from_pretrained(tiny_backbone(family), dtype=dtype, attn_implementation=ATTENTION)
        return model.requires_grad_(False).eval()

    return load


def _save_model(tiny: TinyFamily, dropout: float, folder: Path) -> None:
    import torch
    import transformers

    ids = {f"{role}_token_id": index for index, role in enumerate(_SPECIAL[tiny.tokens])}
    ids = {role: ids.get(role) for role in ("bos_token_id", "pad_token_id", "eos_token_id")}
    ids["bos_token_id"] = ids["bos_token_id"] if tiny.tokens == "roberta" else ids["eos_token_id"]
    if tiny.language_model == "Seq2SeqLM":
        ids |= {"decoder_start_token_id": ids["eos_token_id"] if tiny.tokens == "roberta" else ids["pad_token_id"]}
    config = transformers.AutoConfig.for_model(
        tiny.model_type, vocab_size=200, **tiny.sizes, **ids, **dict.fromkeys(tiny.rates, dropout)
    )
    torch.manual_seed(1)
    head = f"For{tiny.language_model}" if tiny.language_model else ""
    options = {"add_pooling_layer": False} if tiny.model_type in ("roberta", "bert") else {}
    model = getattr(transformers, f"AutoModel{head}").from_config(config, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:  # Marian's positions are no trained ones.
                parameter += tiny.noise * torch.randn(parameter.shape)
        if tiny.language_model:
            model.get_input_embeddings().weight *= 0.3  # Else a tied head says the last token again.
            model.get_output_embeddings().weight[ids["eos_token_id"]] = 0  # No text ends early.
    model.save_pretrained(folder)


def _save_tokenizer(tokens: str, folder: Path) -> None:
    """A WordPiece tokenizer that spells words out, with the special tokens and the pairs of the family."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = _SPECIAL[tokens]
    letters = string.ascii_lowercase + string.digits
    pieces = [*special.values(), *letters, *(f"##{letter}" for letter in letters), *string.punctuation]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk"]))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    single, pair = _TEMPLATES[tokens]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(piece, vocabulary[piece]) for piece in special.values()]
    )
    inputs = ["input_ids", "attention_mask"] + (["token_type_ids"] if tokens == "bert" else [])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=inputs,
        **{f"{role}_token": token for role, token in special.items()},
    ).save_pretrained(folder)
