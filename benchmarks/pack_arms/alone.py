"""Program of arm (a): one trial in its own process with transformers' ``Trainer``; `processes` starts it.

The method comes from peft if peft has it. Else ``Trainer`` trains the deltas of this library in a plain module.
"""

import json
import sys
import tempfile
import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pack_arms.material import own_backbone, prepared_task
from pack_arms.meters import now, peak_bytes
from pack_arms.mix import MixedTrial, mixed_configuration, mixed_trial, request
from pack_arms.setting import Setting
from pack_arms.wire import send
from trial_runner.attachment.attach import Attachment
from trial_runner.backbones import Backbone
from trial_runner.backbones.locate import config_of, padding_token
from trial_runner.deltas.delta_set import DeltaSet
from trial_runner.seeds import derived_seed
from trial_runner.tasks import PreparedTask

_EVALUATION_ROWS = 128
_FFN = r".*\.layer\.\d+\.(intermediate|output)\.dense"
_IA3_FFN = r".*\.layer\.\d+\.output\.dense"


def peft_configuration(trial: MixedTrial, width: int) -> Any:
    """Return the configuration of peft for a method on a RoBERTa; None if peft lacks the method."""
    from peft import IA3Config, LoraConfig, PrefixTuningConfig, PromptTuningConfig

    sizes = [min(size, width) for size in trial.sizes.values()]
    targets = {"lora_qv": ["query", "value"], "lora_kv": ["key", "value"], "lora_ffn": _FFN}
    match trial.method:
        case "lora_qv" | "lora_kv" | "lora_ffn":
            alpha = float(trial.options.get("s", 2)) * sizes[0]
            size = {"r": sizes[0], "lora_alpha": alpha, "lora_dropout": 0.0}
            return LoraConfig(task_type="SEQ_CLS", target_modules=targets[trial.method], **size)
        case "ia3":
            inner = rf".*\.(key|value)|{_IA3_FFN}"
            return IA3Config(task_type="SEQ_CLS", target_modules=inner, feedforward_modules=_IA3_FFN)
        case "prefix_tuning":
            return PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=sizes[0])
        case "prompt_tuning":
            return PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=sizes[0])
        case _:
            return None


class DeltaModel(nn.Module):
    """Frozen backbone with one delta set and a head, in the form that ``Trainer`` trains."""

    def __init__(self, backbone: Backbone, deltas: DeltaSet, labels: int) -> None:
        super().__init__()
        self.backbone = backbone.model
        self.deltas = deltas
        self.head = nn.Linear(backbone.shape.width, labels)
        self._attachment = Attachment(backbone.model, backbone.family, backbone.shape)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        with self._attachment.using(self.deltas):
            hidden = self.backbone(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # (B, T, D)
        mask = attention_mask.unsqueeze(-1).to(hidden.dtype)  # (B, T, 1)
        logits = self.head((hidden * mask).sum(dim=1) / mask.sum(dim=1))  # (B, labels)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def model_of(number: int, setting: Setting, task: PreparedTask) -> tuple[nn.Module, str]:
    """Build the model that ``Trainer`` trains; return it with its source."""
    of_peft = peft_configuration(mixed_trial(number), setting.shape().width)
    if of_peft is not None:
        from peft import get_peft_model
        from transformers import AutoModelForSequenceClassification

        base = AutoModelForSequenceClassification.from_pretrained(
            setting.backbone, num_labels=len(task.labels), dtype=torch.float32
        )
        return get_peft_model(base, of_peft), "peft"
    backbone = own_backbone(setting)
    configuration = mixed_configuration(number, backbone.shape)
    deltas = DeltaSet(configuration, backbone.shape, seed=derived_seed(number, "deltas"))
    return DeltaModel(backbone, deltas, len(task.labels)), "own module"


class _Collator:
    """Collator of the batches of a split, padded to the longest text."""

    def __init__(self, task: PreparedTask, pad_token_id: int) -> None:
        self._task = task
        self._pad_token_id = pad_token_id
        self.split = "train"

    def __call__(self, indices: list[int]) -> dict[str, Tensor]:
        batch = self._task.splits[self.split].batch(indices, self._pad_token_id)
        return {
            "input_ids": torch.from_numpy(batch.input_ids),
            "attention_mask": torch.from_numpy(batch.attention_mask).long(),
            "labels": torch.from_numpy(batch.labels),
        }


def _accuracy(prediction: Any) -> dict[str, float]:
    logits = prediction.predictions
    first = logits[0] if isinstance(logits, tuple) else logits
    return {"accuracy": float(np.mean(first.argmax(axis=-1) == prediction.label_ids))}


def train(number: int, setting: Setting) -> dict[str, Any]:
    """Train and evaluate a trial; return its times, score and peak memory."""
    from transformers import Trainer, TrainingArguments, set_seed

    torch.set_num_threads(setting.threads)
    set_seed(number)
    began_at = now(setting.device)
    task = prepared_task(setting)
    model, source = model_of(number, setting, task)
    collator = _Collator(task, padding_token(config_of(setting.backbone)))
    trial = request(number, mixed_configuration(number, setting.shape()), setting)
    with tempfile.TemporaryDirectory(prefix="packs-trainer-") as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=setting.steps,
            per_device_train_batch_size=setting.batch_size,
            per_device_eval_batch_size=_EVALUATION_ROWS,
            learning_rate=next(filter(None, trial.learning_rates)),
            lr_scheduler_type="linear",
            warmup_steps=int(trial.plan.warmup_fraction * setting.steps),
            max_grad_norm=trial.plan.clip_norm or 0.0,
            seed=number,
            bf16=setting.precision == "bf16",
            use_cpu=setting.device == "cpu",
            dataloader_pin_memory=setting.device == "cuda",
            remove_unused_columns=False,
            label_names=["labels"],
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            data_collator=collator,
            train_dataset=range(len(task.splits["train"])),
            eval_dataset=range(len(task.splits["validation"])),
            compute_metrics=_accuracy,
        )
        loaded_at = now(setting.device)
        trainer.train()
        trained_at = now(setting.device)
        collator.split = "validation"
        score = trainer.evaluate()["eval_accuracy"]
    return {
        "source": source,
        "load_seconds": loaded_at - began_at,
        "train_seconds": trained_at - loaded_at,
        "evaluate_seconds": now(setting.device) - trained_at,
        "processor_seconds": time.process_time(),
        "score": score,
        "peak_bytes": peak_bytes(setting.device),
    }


def main() -> None:
    number, fields = json.loads(sys.argv[1])
    send("answer", train(number, Setting(**fields)))


if __name__ == "__main__":
    main()
