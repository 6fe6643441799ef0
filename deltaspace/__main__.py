"""Entry point of ``python -m deltaspace``, the same as the command ``deltaspace``."""

import sys

from deltaspace.entry_point import main

sys.exit(main())
