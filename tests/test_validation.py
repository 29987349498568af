"""Checks of arguments: the value as it should be, or an error that names it."""

import math
import pickle
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from unbounded import validation as arguments

NAME = "the_name"


@pytest.mark.parametrize(
    ("check", "given", "value"),
    [
        (arguments.checked_count, (3,), 3),
        (arguments.checked_count, (np.int8(3),), 3),
        (arguments.checked_count, (0, 0), 0),
        (arguments.checked_count, (np.array(3),), 3),
        (arguments.checked_real, (2**53 + 1,), 2.0**53),  # the nearest float
        (arguments.checked_real, (np.float32(0.1),), float(np.float32(0.1))),
        (arguments.checked_real, (np.float16(0.5),), 0.5),
        (arguments.checked_real, (np.longdouble(0.5),), 0.5),
        (arguments.checked_real, (np.array(0.1),), 0.1),
        (arguments.checked_real, (np.array(7, dtype=np.uint8),), 7.0),
        (arguments.checked_real, (np.array(Fraction(1, 4)),), 0.25),
        (arguments.checked_real, (Fraction(1, 10),), 0.1),
        (arguments.checked_real, (Decimal("0.1"),), 0.1),
        (arguments.checked_real, (Decimal("1e-400"),), 0.0),
        (arguments.checked_real, (10**400,), math.inf),
        (arguments.checked_real, (-(10**400),), -math.inf),
        (arguments.checked_real, (Fraction(10**400, 3),), math.inf),
        (arguments.checked_real, (Decimal("-1e400"),), -math.inf),
        (arguments.checked_loss, (-3,), -3.0),
        (arguments.checked_loss, (1.7e308,), 1.7e308),
        (arguments.checked_loss, (Decimal("2.5"),), 2.5),
        (arguments.checked_positive, (2,), 2.0),
        (arguments.checked_positive, (np.float32(0.5),), 0.5),
        (arguments.checked_within, (1, 1.0, 2.0), 1.0),
        (arguments.checked_within, (2.0, 1.0, 2.0), 2.0),
        (arguments.checked_at_least, (0, 0.0), 0.0),
        (arguments.checked_share, (0,), 0.0),
        (arguments.checked_share, (1,), 1.0),
        (arguments.checked_flag, (True,), True),
        (arguments.checked_flag, (np.bool_(False),), False),
        (arguments.checked_range, ((-1, 2),), (-1.0, 2.0)),
        (arguments.checked_range, (np.array([0, 1]),), (0.0, 1.0)),
        (arguments.checked_option, ("b", ("a", "b")), 1),
    ],
)
def test_what_is_fine(check, given, value):
    found = check(NAME, *given)
    assert found == value
    assert type(found) is type(value)  # plain, so that it can be saved as JSON


@pytest.mark.parametrize(
    ("check", "given", "error", "words"),
    [
        (arguments.checked_count, (0,), ValueError, "must be at least 1, got 0"),
        (arguments.checked_count, (-1, 0), ValueError, "must be at least 0, got -1"),
        (arguments.checked_count, (True,), TypeError, "must be an integer, not True"),
        (arguments.checked_count, (2.0,), TypeError, "must be an integer, not 2.0"),
        (arguments.checked_count, ("2",), TypeError, "must be an integer, not '2'"),
        (arguments.checked_count, (np.array(2.5),), TypeError, "must be an integer, not"),
        (arguments.checked_count, (np.array([3]),), TypeError, "must be an integer, not"),
        (arguments.checked_count, (np.array(True),), TypeError, "must be an integer, not"),
        (arguments.checked_count, (np.True_,), TypeError, "must be an integer, not"),
        (arguments.checked_count, (Decimal(2),), TypeError, "must be an integer, not"),
        (arguments.checked_count, (-(10**5000),), ValueError, "must be at least 1, got a value"),
        (arguments.checked_real, (True,), TypeError, "must be a real number, not True"),
        (arguments.checked_real, (np.False_,), TypeError, "must be a real number, not np.False_"),
        (arguments.checked_real, (np.array(True),), TypeError, "must be a real number, not array"),
        (arguments.checked_real, (np.array([1.0]),), TypeError, "must be a real number, not"),
        (arguments.checked_real, (np.ma.masked,), TypeError, "must be a real number, not masked"),
        (arguments.checked_real, (np.timedelta64(5, "s"),), TypeError, "must be a real number"),
        (arguments.checked_real, ("1",), TypeError, "must be a real number, not '1'"),
        (arguments.checked_real, (b"1",), TypeError, "must be a real number, not b'1'"),
        (arguments.checked_real, (None,), TypeError, "must be a real number, not None"),
        (arguments.checked_real, (1 + 0j,), TypeError, "must be a real number, not (1+0j)"),
        (arguments.checked_loss, (math.nan,), ValueError, "must be finite, got nan; if it is not"),
        (arguments.checked_loss, (10**400,), ValueError, "must be finite, got 1000"),
        (arguments.checked_loss, (10**5000,), ValueError, "must be finite, got a value of type"),
        (arguments.checked_loss, (np.longdouble("1e4000"),), ValueError, "must be finite, got"),
        (arguments.checked_loss, (Decimal("sNaN"),), ValueError, "must be finite, got Decimal("),
        (arguments.checked_loss, (Decimal("1e400"),), ValueError, "must be finite, got Decimal("),
        (arguments.checked_positive, (0.0,), ValueError, "must be above 0, got 0.0"),
        (arguments.checked_positive, (Fraction(1, 10**400),), ValueError, "must be above 0, got"),
        (arguments.checked_positive, (10**400,), ValueError, "must be above 0, got 1000"),
        (arguments.checked_positive, (math.nan,), ValueError, "must be above 0, got nan"),
        (arguments.checked_positive, (math.inf,), ValueError, "must be above 0, got inf"),
        (arguments.checked_positive, (True,), TypeError, "must be a real number, not True"),
        (arguments.checked_positive, ("1",), TypeError, "must be a real number, not '1'"),
        (
            arguments.checked_count,
            (2**53,),
            ValueError,
            "must be below 2**53, got 900719925",
        ),
        (arguments.checked_count, (10**5000,), ValueError, "must be below 2**53, got a value"),
        (arguments.checked_constant, (0.0,), ValueError, "must be above 0, got 0.0"),
        (arguments.checked_constant, (1e-51,), ValueError, "must be in [1e-50, 1e+50], got 1e-51"),
        (arguments.checked_constant, (1e51,), ValueError, "must be in [1e-50, 1e+50], got 1e+51"),
        (arguments.checked_factor, (-1.0,), ValueError, "must be at least 0 and finite, got -1.0"),
        (arguments.checked_factor, (5e-324,), ValueError, "must be in [1e-50, 1e+50], got 5e-324"),
        (arguments.checked_within, (0.9, 1.0, 2.0), ValueError, "must be in [1, 2], got 0.9"),
        (arguments.checked_within, (2.1, 1.0, 2.0), ValueError, "must be in [1, 2], got 2.1"),
        (arguments.checked_within, (math.nan, 1.0, 2.0), ValueError, "must be in [1, 2]"),
        (arguments.checked_at_least, (-0.1, 0.0), ValueError, "must be at least 0 and finite"),
        (arguments.checked_at_least, (math.inf, 0.0), ValueError, "must be at least 0 and finite"),
        (arguments.checked_share, (1.5,), ValueError, "must be in [0, 1], got 1.5"),
        (arguments.checked_part, (0.0,), ValueError, "must be above 0 and at most 1, got 0.0"),
        (arguments.checked_part, (1.5,), ValueError, "must be above 0 and at most 1, got 1.5"),
        (arguments.checked_flag, (1,), TypeError, "must be True or False, not 1"),
        (arguments.checked_range, ((1, 1),), ValueError, "must be finite with low < high"),
        (arguments.checked_range, ((0, math.inf),), ValueError, "must be finite with low < high"),
        (arguments.checked_range, (5,), TypeError, "must be two numbers (low, high), not 5"),
        (arguments.checked_range, ((1, 2, 3),), TypeError, "must be two numbers (low, high)"),
        (arguments.checked_range, ("01",), TypeError, "must be two numbers (low, high), not '01'"),
        (arguments.checked_range, ((False, True),), TypeError, "must be two numbers (low, high)"),
        (arguments.checked_option, ("c", ("a", "b")), ValueError, "must be one of 'a', 'b', got"),
    ],
)
def test_what_is_not(check, given, error, words):
    with pytest.raises(error, match=re.escape(f"{NAME} {words}")):
        check(NAME, *given)


@pytest.mark.parametrize(
    "values",
    [
        [1, 0.5, -2],
        (1, np.float32(0.5), Fraction(-2)),
        [Decimal(1), np.array(0.5), -2.0],
        np.array([1, 0.5, -2]),
        np.array([1, Fraction(1, 2), Decimal(-2)]),
        np.array([1, 0.5, -2], dtype=np.longdouble),
        np.array([-2, 0.5, 1], dtype=np.float32)[::-1],
    ],
    ids=lambda values: f"{type(values).__name__} of {type(values[1]).__name__}",
)
def test_vectors_of_losses(values):
    found = arguments.checked_losses(NAME, values, 3, "arm")
    assert found.tolist() == [1.0, 0.5, -2.0]
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    assert found is not values


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ([1.0, 2.0], ValueError, " must have shape (3,), one per arm; got (2,)"),
        (np.zeros((3, 1)), ValueError, " must have shape (3,), one per arm; got (3, 1)"),
        (1.0, ValueError, " must have shape (3,), one per arm; got ()"),
        (None, ValueError, " must have shape (3,), one per arm; got ()"),
        ([1.0, True, 2.0], TypeError, "[1] must be a real number, not True"),
        (np.array([True, False, True]), TypeError, "[0] must be a real number, not np.True_"),
        (["1", "2", "3"], TypeError, "[0] must be a real number, not '1'"),
        (np.array([1j, 0, 0]), TypeError, "[0] must be a real number, not np.complex128"),
        ([[1.0], [2.0], [3.0]], TypeError, "[0] must be a real number, not [1.0]"),
        ([0.0, math.nan, 1.0], ValueError, "[1] must be finite, got nan"),
        (np.array([0.0, 1.0, -math.inf]), ValueError, "[2] must be finite, got np.float64(-inf)"),
        ([0.0, 10**400, 1.0], ValueError, "[1] must be finite, got 1000"),
        (np.array([0, 1, "1e4000"], dtype=np.longdouble), ValueError, "[2] must be finite, got"),
    ],
)
def test_what_are_no_losses(values, error, words):
    with pytest.raises(error, match=re.escape(f"{NAME}{words}")):
        arguments.checked_losses(NAME, values, 3, "arm")


def test_errors_quote_one_bounded_line():
    assert arguments.shown(0.5) == "0.5"
    assert arguments.shown(np.eye(2)) == "array([[1., 0.], [0., 1.]])"
    assert len(arguments.shown("x" * 1000)) == 200
    assert arguments.shown(10**5000) == "a value of type int"


def test_below():
    assert arguments.checked_positive(NAME, 0.5, below=1.0) == 0.5
    with pytest.raises(ValueError, match=f"{NAME} must be above 0 and below 1, got 1.0"):
        arguments.checked_positive(NAME, 1.0, below=1.0)


def test_what_can_fail_must_be_meant():
    for clip, mixing in (("scale", 1.0), ("scale", 0.0), ("range", 0.5)):
        arguments.checked_ablation(clip, mixing, False)
    for clip, mixing, words in (
        ("none", 1.0, "clip='none' can fail"),
        ("range", 0.0, "clip='range' needs exploration"),
    ):
        with pytest.raises(ValueError, match=words):
            arguments.checked_ablation(clip, mixing, False)
        arguments.checked_ablation(clip, mixing, True)
    with pytest.raises(TypeError, match="ablation must be True or False"):
        arguments.checked_ablation("scale", 1.0, 1)


def test_recorded_rounds():
    points = arguments.recorded_rounds(20, 1000)
    assert points[0] == 1
    assert points[-1] == 1000
    assert np.all(np.diff(points) > 0)
    assert arguments.recorded_rounds(1, 1000).tolist() == [1000]
    assert arguments.recorded_rounds(50, 3).tolist() == [1, 2, 3]
    assert arguments.recorded_rounds([7, 3, 7], 10).tolist() == [3, 7]
    assert arguments.recorded_rounds(range(1, 4), 10).tolist() == [1, 2, 3]
    for wrong in ([], [0], [11], 0, [1.5], 2.5, "all", [[1, 2]], True):
        with pytest.raises((ValueError, TypeError), match="checkpoints"):
            arguments.recorded_rounds(wrong, 10)


def test_vectors_and_arrays():
    assert arguments.checked_vector(NAME, [1, 2], 2).dtype == np.float64
    strided = np.arange(6.0)[::2]
    assert arguments.checked_vector(NAME, strided, 3).flags.c_contiguous
    with pytest.raises(ValueError, match=rf"{NAME} must be a flat vector of shape \(3,\)"):
        arguments.checked_vector(NAME, [[1, 2, 3]], 3)
    arrays = arguments.checked_arrays(NAME, [[1], [[2, 3]]], [(1,), (1, 2)])
    assert [a.tolist() for a in arrays] == [[1.0], [[2.0, 3.0]]]
    with pytest.raises(ValueError, match=f"{NAME} must hold 2 arrays, one per layer; got 1"):
        arguments.checked_arrays(NAME, [[1]], [(1,), (1, 2)])
    with pytest.raises(ValueError, match=rf"{NAME}\[1\] must have shape \(1, 2\), got \(2,\)"):
        arguments.checked_arrays(NAME, [[1], [2, 3]], [(1,), (1, 2)])


def test_distributions():
    P = np.array([[0.5, 0.5], [0.25, 0.75 + 1e-10]])
    arguments.checked_distributions(NAME, P)
    assert P[1].sum() == 1.0  # rounding is renormalised
    for wrong, words in (
        ([[0.5, 0.5], [0.3, 0.6]], r"the_name\[1\] sums to 0.9; a distribution must sum to 1"),
        ([[1.5, -0.5]], r"the_name\[0, 1\] is -0.5; a probability cannot be negative"),
        ([[np.nan, 1.0]], "the_name has entries that are not finite"),
    ):
        with pytest.raises(ValueError, match=words):
            arguments.checked_distributions(NAME, np.array(wrong))
    with pytest.raises(ValueError, match=r"the_name sums to 0\.5"):
        arguments.checked_distributions(NAME, np.array([0.25, 0.25]))


def test_numbers_of_layers():
    found = arguments.checked_numbers(NAME, [1.0, 0], (2, 1))
    assert found.tolist() == [1, 0]
    assert found.dtype == np.int64
    for wrong, error, words in (
        ([1], ValueError, r"must have shape \(2,\), one per layer; got \(1,\)"),
        ([2, 0], ValueError, r"integers in 0..\[1, 0\], got \[2, 0\]"),
        ([-1, 0], ValueError, "integers in"),
        ([0.5, 0], ValueError, "integers in"),
        ([np.nan, 0], ValueError, "integers in"),
        (["a", "b"], TypeError, "integers, not of type"),
        ([True, False], TypeError, "integers, not of type bool"),
    ):
        with pytest.raises(error, match=words):
            arguments.checked_numbers(NAME, wrong, (2, 1))


def test_functions_are_asked_what_they_take() -> None:
    class Callable:
        def __call__(self, a, b=1, *rest):
            return a

    for fine in (lambda a, b: a, lambda *all: all, Callable(), Callable().__call__, type):
        arguments.checked_function(NAME, fine, "a", "b")
    for wrong in (lambda a: a, lambda a, b, c: a, lambda a, *, b: a, int.bit_length):
        with pytest.raises(TypeError, match=rf"^{NAME} must take \(a, b\), and .* does not$"):
            arguments.checked_function(NAME, wrong, "a", "b")


def test_errors_say_which_argument_it_was():
    """As data, also after a trip to another process."""
    for check, given, name in (
        (arguments.checked_count, ("n[3]", 0), "n"),
        (arguments.checked_real, ("x", "text"), "x"),
        (arguments.checked_ablation, ("none", 1.0, False), "clip"),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            check(*given)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.argument, str(again)) == (name, str(caught.value))
        assert str(again).startswith(name)


def test_settings_do_not_hide_what_the_base_has():
    class Base:
        def begin(self):
            """What a setting of this name would hide."""

    arguments.check_settings(Base, Base, ["scale"])
    with pytest.raises(TypeError, match=r"begin cannot be a setting of Own: Base\.begin"):
        arguments.check_settings(type("Own", (Base,), {}), Base, ["scale", "begin"])
