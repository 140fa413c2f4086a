"""How much the tests try: few examples by default, more when asked to look long."""

import os

SCALE = float(os.environ.get("CMM_TEST_SCALE", "1"))  # 5 and more before a release


def tries(usual: int) -> int:
    """How many examples, seeds or kills, of so many in the usual run; at least one."""
    return max(1, round(usual * SCALE))
