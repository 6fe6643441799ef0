"""Damage to texts and bytes."""

import random

NASTY = (
    "null", "true", "-1", "0", "1e400", "-0.0", ".nan", ".inf", "9" * 40, "9" * 5000, "0x" + "f" * 200, "1:59:59",
    "''", '"\\0"', "\x1b[2J", "\u202e", "é" * 50, "[]", "{}", "[[[[]]]]", "{a: {b: {c: 1}}}", "[1, 2", "{a: 1", "*a",
    "&a [*a]", "<<: *a", "!!python/name:os.system", "!!binary AAAA", "2020-01-01", "50%", "-3%", "1e-300%", "100000%",
    "embedded", "/", "..", "~", "/dev/null", "a" * 3000, "- - - -", "? : ?", "|", ">", "---", "...", "%TAG", "@",
    "lora:r=-1", "mam_adapter", "lora_qv:r=1e9", "score", "parameters", "auto", "none", "all", "10s", "-1h", "1e9h",
)  # fmt: skip


def damaged_text(text: str, draw: random.Random) -> str:
    """Delete, repeat, move or replace some lines or words of a text; replacements are hard to parse."""
    lines = text.splitlines()
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(lines)) if lines else 0
        line = lines[place] if lines else ""
        match draw.randrange(8):
            case 0:
                lines[place : place + 1] = []
            case 1:
                lines.insert(place, line)
            case 2:
                lines.insert(draw.randint(0, len(lines)), line)
            case 3 | 4:
                key = line.split(":", 1)[0]
                lines[place : place + 1] = [f"{key}: {draw.choice(NASTY)}"]
            case 5:
                at = draw.randint(0, len(line))
                lines[place : place + 1] = [line[:at] + draw.choice(NASTY) + line[at:]]
            case 6:
                lines[place : place + 1] = [" " * draw.randint(0, 9) + line.strip()]
            case _:
                at = draw.randint(0, len(line))
                letter = chr(draw.choice([draw.randrange(128), draw.randrange(0xD800)]))
                lines[place : place + 1] = [line[:at] + letter + line[at + 1 :]]
    return "\n".join(lines)


def odd_json(value: object, draw: random.Random) -> object:
    """Replace a random value in JSON."""
    if isinstance(value, dict | list) and value and draw.random() < 0.8:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        changed, key = value.copy(), draw.choice(keys)
        changed[key] = odd_json(value[key], draw)
        return changed
    return draw.choice((None, True, 7, -1.5, 10**18, float("inf"), "", [], {}, [7], draw.choice(NASTY)))


def damaged_bytes(content: bytes, draw: random.Random, *, within: int | None = None) -> bytes:
    """Change, delete, repeat or append some bytes.

    Args:
        within: Number of the first bytes that are damaged; None for all.
    """
    data = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        end = max(1, min(len(data), within or len(data)))
        at = draw.randrange(end)
        match draw.randrange(6):
            case 0 | 1:
                data[at : at + 1] = bytes([draw.randrange(256)])
            case 2:
                data[at : at + 1] = draw.choice((b"\0", b"\xff", b"9", b"{", b"[", b'"', b"-"))
            case 3:
                del data[at : at + draw.randint(1, 64)]
            case 4:
                data[at:at] = data[max(0, at - 32) : at]
            case _:
                data[at:at] = draw.choice(NASTY).encode("utf-8", "replace")
    return bytes(data)
