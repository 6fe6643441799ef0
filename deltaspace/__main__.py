"""``python -m deltaspace`` is the command ``deltaspace``."""

import sys

from deltaspace.entry_point import main

sys.exit(main())
