"""The least numbers that some rules allow, each a sum of others: `x <= y + z + 2`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmm.compiler.trie import ranges

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """Rule i: each of its heads is at most the sum of its terms and `more[i]`.

    Terms and heads are indices of numbers; those of rule i follow those of rule i - 1.
    """

    terms: Int64s
    term_counts: Int64s  # (rules,) one at least
    heads: Int64s
    head_counts: Int64s  # (rules,)
    more: Int64s  # (rules,)

    @classmethod
    def steps(cls, heads: Int32s, terms: Int32s) -> Rules:
        """Rules of one head and one term, which is one less."""
        ones = np.ones(len(heads), np.int64)
        return cls(terms.astype(np.int64), ones, heads.astype(np.int64), ones, ones)

    @classmethod
    def joined(cls, parts: Sequence[Rules]) -> Rules:
        """All of several."""
        names = ("terms", "term_counts", "heads", "head_counts", "more")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def relaxed(numbers: npt.NDArray[np.integer], parts: Sequence[Rules]) -> Int64s:
    """The numbers, fallen until every rule holds.

    >>> [relaxed(np.array([9, 9, 0]), [Rules.steps(np.array([0, 1]), np.array([1, 2]))]).tolist()]
    [[2, 1, 0]]

    A rule is looked at again only when a term of it has fallen: a chain of thousands of states
    takes as many rounds, each of them short.
    """
    rules, found = Rules.joined(parts), numbers.astype(np.int64)
    term_starts = np.cumsum(rules.term_counts) - rules.term_counts
    head_starts = np.cumsum(rules.head_counts) - rules.head_counts
    users = np.repeat(np.arange(len(rules.more)), rules.term_counts)
    users = users[np.argsort(rules.terms, kind="stable")]
    use_counts = np.bincount(rules.terms, minlength=len(found))
    use_starts = np.cumsum(use_counts) - use_counts
    fresh = np.arange(len(rules.more))
    while len(fresh):
        counts = rules.term_counts[fresh]
        terms = rules.terms[ranges(term_starts[fresh], counts)]
        sums = np.add.reduceat(found[terms], np.cumsum(counts) - counts) + rules.more[fresh]
        counts = rules.head_counts[fresh]
        heads = rules.heads[ranges(head_starts[fresh], counts)]
        offered = np.repeat(sums, counts)
        lower = np.flatnonzero(offered < found[heads])
        heads = heads[lower]
        np.minimum.at(found, heads, offered[lower])
        fallen = np.unique(heads)
        fresh = np.unique(users[ranges(use_starts[fallen], use_counts[fallen])])
    return found
