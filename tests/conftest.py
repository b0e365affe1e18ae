"""What all tests share: Hypothesis without deadlines, because two busy cores make any example slow once."""

from __future__ import annotations

import hypothesis

hypothesis.settings.register_profile("shared-machine", deadline=None, print_blob=True)
hypothesis.settings.load_profile("shared-machine")
