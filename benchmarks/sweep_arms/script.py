"""Program of the baseline: a sweep of LoRA with Optuna, transformers' ``Trainer`` and peft, as their docs have it.

The plan, a JSON file, has the backbone, the data, the training and the configurations that are tried in turn.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import optuna
import torch
from datasets import load_dataset
from peft import LoraConfig, TaskType, get_peft_model
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)


class EvaluateAt(TrainerCallback):  # type: ignore[misc]
    """Evaluates at the steps of the plan alone."""

    def __init__(self, steps: list[int]) -> None:
        self._steps = set(steps)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        control.should_evaluate = state.global_step in self._steps


def main() -> None:
    plan = json.loads(Path(sys.argv[1]).read_text())
    tokenizer = AutoTokenizer.from_pretrained(plan["backbone"])
    data = load_dataset(
        "json", data_files={split: f"{plan['data']}/{split}.jsonl" for split in ("train", "validation")}
    )
    names = sorted(set(data["train"]["label"]))

    def tokenize(rows: dict[str, list[str]]) -> dict[str, Any]:
        tokens = tokenizer(rows["text"], truncation=True, max_length=plan["max_tokens"])
        return {**tokens, "labels": [names.index(label) for label in rows["label"]]}

    data = data.map(tokenize, batched=True, remove_columns=["text", "label"])

    def score(trial: optuna.Trial) -> float:
        chosen = plan["configurations"][trial.suggest_int("configuration", 0, len(plan["configurations"]) - 1)]
        base = AutoModelForSequenceClassification.from_pretrained(
            plan["backbone"], num_labels=len(names), dtype=torch.float32
        )  # 16 bits, as they are stored, are several times slower on most CPUs
        model = get_peft_model(base, LoraConfig(task_type=TaskType.SEQ_CLS, **chosen["lora"]))
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                output_dir=folder,
                max_steps=plan["steps"],
                learning_rate=chosen["learning_rate"],
                per_device_train_batch_size=plan["batch"],
                per_device_eval_batch_size=64,
                warmup_steps=plan["warmup"],
                bf16=plan["precision"] == "bf16",
                save_strategy="no",
                report_to="none",
                use_cpu=True,
                disable_tqdm=True,
            )
            trainer = Trainer(
                model=model,
                args=arguments,
                train_dataset=data["train"],
                eval_dataset=data["validation"],
                data_collator=DataCollatorWithPadding(tokenizer),
                compute_metrics=lambda found: {
                    "accuracy": float((found.predictions.argmax(-1) == found.label_ids).mean())
                },
                callbacks=[EvaluateAt(plan["evaluate_at"])],
            )
            trainer.train()
        return float([one["eval_accuracy"] for one in trainer.state.log_history if "eval_accuracy" in one][-1])

    study = optuna.create_study(direction="maximize")
    for index in range(len(plan["configurations"])):
        study.enqueue_trial({"configuration": index})
    study.optimize(score, n_trials=len(plan["configurations"]))
    print(json.dumps([trial.value for trial in study.trials]))


if __name__ == "__main__":
    main()
