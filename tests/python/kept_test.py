# kept: values with large memory in them, their two latest copies, and what is no copy.
# ranks: 1
import check

try:
    import numpy as np
except ImportError:
    check.skip("NumPy is not installed")

from muster import kept


def value_of(step):
    return {"step": step, "array": np.full(1000, step), "empty": np.empty((0, 3)), "fixed": np.frombuffer(b"abc", np.uint8), "text": "x" * step}


def test_two_latest():
    assert kept.steps() == [] and not kept.is_held()
    for step in (3, 4, 7):
        kept.keep(step, value_of(step))
    assert kept.steps() == [7, 4]
    for step in (7, 4):
        back = kept.load(step)
        for name, value in value_of(step).items():
            assert np.array_equal(back[name], value), name
        back["array"][:] = 0  # a copy
    assert kept.load(7)["array"][0] == 7
    check.raises(KeyError, lambda: kept.load(3), "no whole copy of commit 3")


def test_what_cannot_be_pickled_changes_nothing():
    check.raises(Exception, lambda: kept.keep(9, lambda: None))
    assert kept.steps() == [7, 4]


check.run(globals())
