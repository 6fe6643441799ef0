"""What the help of every command has in common."""


def examples(*lines: str) -> str:
    """The examples at the end of a help text; click leaves the lines as they are."""
    return "\b\nexamples:\n" + "\n".join(f"  {line}" for line in lines)
