"""Entry point of the command ``deltaspace``. Imports nothing before Ctrl-C is handled."""

import sys


def main() -> int:
    """Run the command line; Ctrl-C ends it with 130 and a line, also while modules are imported."""
    try:
        from deltaspace.commands.main import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("deltaspace: interrupted.\n")
        return 130
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # while Python ends, Ctrl-C prints no traceback
