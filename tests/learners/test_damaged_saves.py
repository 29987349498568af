"""Damaged saves of every learner are refused, or play; nothing crashes, hangs or plays nonsense."""

import pytest

from damaged_saves import attacked, attacked_together
from unbounded import bandits, mdps

NAMES = [*bandits.algorithms(), *mdps.algorithms()]
_ALL = 10_000
_DOSE = 12  # for each learner, in `make test`


@pytest.mark.parametrize("names", [NAMES[i::4] for i in range(4)], ids=range(4))
def test_damaged_saves_are_rejected_or_play(names):
    """Interpreted, so that an index out of bounds is an error, whatever memory is there."""
    bad = attacked_together(names, _DOSE)
    assert not bad, "\n".join(bad)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_ten_thousand_damaged_saves(name):
    """Two of three interpreted, the others compiled."""
    each = -(-_ALL // len(NAMES))
    compiled = each // 3
    counts, bad = attacked(name, each - compiled, interpreted=True, first=1000)
    more, worse = attacked(name, compiled, interpreted=False, first=5000)
    bad += worse
    assert not bad, "\n".join(bad)
    assert counts["nothing", "plays"] > 0  # the control
    assert counts["slots", "refused"] > 0
    assert sum((counts + more).values()) == each
