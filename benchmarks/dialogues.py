"""A small study of dialogues from data to a confirmation: loss at rungs, what is written measured at the end.

    python benchmarks/dialogues.py --data gsm8k_chat=FOLDER --data user_instructions_chat=FOLDER

There is no pretrained decoder without a hub, so one is made first: a Qwen3 of two blocks, 64 wide, that has read the
questions and answers of the first folder for some steps. It writes nothing that makes sense, and scores say that; what
is shown is that every part works on data as they are: a chat template, system prompts, answers alone learned, bounded
tokens of a step, exact match behind a mark, ROUGE, and the test split at the end. All lies in --folder, and the same
command goes on where it was stopped.
"""

import argparse
import json
import os
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import yaml

import deltaspace
from studies.confirming.results import verdict_sentences

_FOLDER = Path(__file__).parent / "dialogues"
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_VOCABULARY, _WIDTH, _POSITIONS = 800, 64, 512
_TASKS: dict[str, dict[str, Any]] = {
    "gsm8k_chat": {
        "references": "answer",
        "answer_after": "Answer:",
        "metric": "exact_match",
        "metrics": ["exact_match", "token_f1", "loss"],
    },
    "user_instructions_chat": {"metric": "rougeL", "metrics": ["rougeL", "loss"], "system": "Answer the request."},
}


def arguments_of(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", action="append", required=True, metavar="TASK=FOLDER", help=f"of {', '.join(_TASKS)}")
    add("--folder", type=Path, default=_FOLDER, help="of decoder and database (default benchmarks/dialogues)")
    add("--steps", type=int, default=60, help="of a trial (default 60)")
    add("--trials", type=int, default=4, help="of a study (default 4)")
    add("--reading-steps", type=int, default=150, help="of the decoder before it is frozen (default 150)")
    add("--seeds", type=int, default=2, help="fresh seeds of each contender (default 2)")
    return parser.parse_args(words)


def rendered(data: Path) -> list[str]:
    """The dialogues of train as the template writes them."""
    with (data / "train.jsonl").open(encoding="utf-8") as lines:
        chats = [json.loads(line)["messages"] for line in lines]
    return ["".join(f"<|im_start|>{one['role']}\n{one['content']}<|im_end|>\n" for one in chat) for chat in chats]


def decoder_of(texts: list[str], folder: Path, steps: int) -> float:
    """Make the decoder, unless it is there; the loss it ends with."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    if (folder / "loss.txt").exists():
        return float((folder / "loss.txt").read_text())
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokens.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY, special_tokens=list(_SPECIAL), initial_alphabet=alphabet, show_progress=False
    )
    tokens.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokens, eos_token=_SPECIAL[0], additional_special_tokens=_SPECIAL[1:], chat_template=_CHATML
    )
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=_VOCABULARY,
        hidden_size=_WIDTH,
        intermediate_size=2 * _WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=_POSITIONS,
        tie_word_embeddings=True,
        eos_token_id=0,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loss = 0.0
    for number, start in enumerate(islice(cycle(range(0, len(texts) - 8, 8)), steps)):
        rows = tokenizer(texts[start : start + 8], truncation=True, max_length=160, padding=False)["input_ids"]
        least = min(map(len, rows))
        ids = torch.tensor([row[:least] for row in rows])
        step = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad()
        step.backward()
        optimizer.step()
        loss = 0.9 * loss + 0.1 * step.item() if number else step.item()
    model.save_pretrained(folder)
    (folder / "loss.txt").write_text(f"{loss:.4f}")
    return loss


def study_of(name: str, data: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """A study file."""
    task = {"kind": "instruction", "folder": str(data.resolve()), "messages": "messages", "max_tokens": 256}
    return {
        "name": name.replace("_", "-"),
        "backbone": str((arguments.folder / "decoder").resolve()),
        "task": {**task, **_TASKS[name], "decoding": {"max_new_tokens": 96}, "validation_examples": 100},
        "budget": "4%",
        "trials": arguments.trials,
        "training": {"steps": arguments.steps, "batch_size": 16, "batch_tokens": 2560, "schedule": "cosine"},
        "pruning": {"first_rung_steps": arguments.steps // 2},
        "search": {"published": ["lora_qv", "lora_ffn"]},
        "fleet": {"backend": "inline", "pack": 2, "artefacts": str((arguments.folder / "artefacts").resolve())},
    }


def main(words: list[str] | None = None) -> None:
    arguments = arguments_of(words)
    folders = {name: Path(place) for name, _, place in (one.partition("=") for one in arguments.data)}
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("DELTASPACE_CACHE", str(arguments.folder / "cache"))
    storage = f"sqlite:///{(arguments.folder / 'dialogues.db').resolve()}"
    began = time.process_time()
    loss = decoder_of(rendered(next(iter(folders.values()))), arguments.folder / "decoder", arguments.reading_steps)
    print(f"a decoder that has read for {arguments.reading_steps} steps, to a loss of {loss:.2f} a token\n")
    for name, data in folders.items():
        file = arguments.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump(study_of(name, data, arguments)))
        study = deltaspace.launch(file, storage=storage, progress=False)
        print(study.leaderboard())
        print(study.readings.to_string(), "\n")
        result = study.confirm(top=1, seeds=arguments.seeds, against="lora_qv", progress=False)
        print(result.table())
        print(*verdict_sentences(result), sep="\n", end="\n\n")
    print(f"{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()
