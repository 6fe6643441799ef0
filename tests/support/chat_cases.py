"""Tiny decoders that can be talked with: their chat templates, with and without what a template may have."""

import shutil
from pathlib import Path

CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""As Qwen 2.5 writes dialogues."""

TAGGED = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}{{ '<|im_start|>assistant\n' }}"
    "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\n' }}{% else %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""The same, which says itself where answers are."""

THINKING = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% if message['role'] == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}{% endif %}"
    "{{ message['content'] + '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
"""As Qwen 3: the last answer has thoughts before it, which are taken away once something follows."""

SHORT = (
    "{% for message in messages %}{{ ('<|im_start|>' if message['role'] == 'user' else '') + message['content'] }}"
    "{{ '<|im_end|>' }}{% endfor %}"
)
"""In few tokens: before an answer stands the end of the question."""

ENDLESS = "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}{% endfor %}"


def chat_backbone(decoder: Path, folder: Path, template: str = CHATML) -> Path:
    """Copy a tiny decoder and give its tokenizer a chat template and the tokens that it needs."""
    from transformers import AutoTokenizer

    shutil.copytree(decoder, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    return folder
