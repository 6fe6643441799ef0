"""Tiny backbones, two layers and 16 wide: how the folder of each family is made."""

import string
from dataclasses import dataclass, replace
from pathlib import Path

from search_space.backbones import FAMILIES, BackboneFamily, shape_of
from search_space.dimensions import StackKind

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
    """Recipe of a tiny backbone: entries of its config and the special tokens of its tokenizer.

    Its weights are away from those of a fresh model, whose biases are 0 and gains 1.
    """

    model_type: str
    tokens: str
    rates: tuple[str, ...]
    sizes: dict[str, object]
    language_model: str | None = None
    noise: float = 0.1


def _of(family: BackboneFamily, **changed: object) -> TinyFamily:
    """Return the tiny backbone of a family without special needs: its example, with some entries changed."""
    shape = shape_of({**family.example, "model_type": family.model_types[0]})
    tokens, language_model = {
        StackKind.ENCODER: ("bert", None),
        StackKind.ENCODER_DECODER: ("roberta", "Seq2SeqLM"),
        StackKind.DECODER: ("gpt2", "CausalLM"),
    }[shape.kind]
    sizes = {**family.example, "initializer_range": 0.1, **changed}
    if "max_position_embeddings" in sizes:
        sizes["max_position_embeddings"] = 66
    return TinyFamily(family.model_types[0], tokens, (), sizes, language_model)


TINY_FAMILIES = {name: _of(family) for name, family in FAMILIES.items()} | {
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
    "mpnet": TinyFamily("mpnet", "roberta", _BERT_RATES, _ENCODER),
    "deberta-v2": replace(_of(FAMILIES["deberta-v2"]), rates=_BERT_RATES),
    "gemma2": _of(FAMILIES["gemma2"], sliding_window=60),  # room for prompts; Gemma 3 has short windows
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


def save_model(tiny: TinyFamily, dropout: float, folder: Path) -> None:
    import torch
    import transformers

    ids = {f"{role}_token_id": index for index, role in enumerate(_SPECIAL[tiny.tokens])}
    ids = {role: ids.get(role) for role in ("bos_token_id", "pad_token_id", "eos_token_id")}
    ids["bos_token_id"] = ids["bos_token_id"] if tiny.tokens == "roberta" else ids["eos_token_id"]
    if tiny.language_model == "Seq2SeqLM":
        ids |= {"decoder_start_token_id": ids["eos_token_id"] if tiny.tokens == "roberta" else ids["pad_token_id"]}
    config = transformers.AutoConfig.for_model(
        tiny.model_type, **(tiny.sizes | {"vocab_size": 200} | ids | dict.fromkeys(tiny.rates, dropout))
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


def save_tokenizer(tokens: str, folder: Path) -> None:
    """Save a WordPiece tokenizer that spells words out, with the special tokens and pairs of the family."""
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
