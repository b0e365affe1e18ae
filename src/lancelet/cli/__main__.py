"""``python -m lancelet.cli`` is the command ``lancelet``."""

from __future__ import annotations

import sys

from lancelet.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
