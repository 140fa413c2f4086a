"""Of the allowed tokens the likeliest that is kept wins; none is ever chosen that is not allowed."""

import numpy as np
import pytest

from cmm.runtime.choose import choose_token


class Stub:
    """A table with one decision, of which some tokens are kept and some are near the end."""

    start = "open"

    def __init__(self, kept, far=()):
        self.kept = set(kept)
        self.far = set(far)

    def allowed(self, state):
        return np.array([3, 5, 7, 9], np.int32)

    def keeps(self, state, token):
        return token in self.kept

    def next(self, state, token):
        return token

    def is_final(self, state):
        return False

    def distance(self, state):
        return 10 if state in self.far else 1

    def distances_after(self, state):
        return np.array([self.distance(token) for token in (3, 5, 7, 9)], np.int32)


@pytest.mark.parametrize(
    ("kept", "far", "logits", "chosen"),
    [
        ({3, 5, 7, 9}, (), [1, 4, 2, 3], 5),
        ({3, 7, 9}, (), [1, 4, 2, 3], 9),  # the likeliest is no spelling of the tokenizer's
        ({3}, (), [3.5, 4, 2, 3.8], 3),
        ({3}, (), [1, 4, 2, 3], 5),  # one that is would write something much less likely
        ((), (), [1, 4, 2, 3], 5),  # none is: any end is better than none
        ({5, 7}, (5,), [1, 4, 2, 3], 7),  # kept, but too far from the end
        ({5}, (5, 9), [1, 4, 2, 3], 7),  # of those near enough none is kept
        ({3, 5, 7, 9}, (), [2, 2, 1, 2], 3),  # ties go to the lowest id
    ],
)
def test_the_likeliest_kept_token_that_can_still_end_wins(kept, far, logits, chosen):
    choice = choose_token(Stub(kept, far), "open", np.array(logits, np.float32), 5)
    assert choice.token == chosen


@pytest.mark.parametrize(
    ("logits", "margin"),
    [([1, 4, 2, 3.1], 0.1), ([1, 4, 2, 2.9], 0.1), ([1, 4, 2, 3.5], 0.5), ([1, 4, 0, 1], 2)],
)
def test_a_decision_for_the_spelling_is_as_close_as_that_is_to_being_made(logits, margin):
    """Else it could be another in another batch, where logits differ a little."""
    choice = choose_token(Stub({3, 9}), "open", np.array(logits, np.float32), 5)
    assert choice.margin == pytest.approx(margin)
