"""Docstrings taken apart: what is kept as prose, what is left out, and the names in See Also."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data.sets.docstrings import parse_docstring

DOCSTRING = """
    value = smooth(a, width=3,
                   axis=-1)

    smooth(a)

    Take the noise out of a series [1]_.

    The running mean of :func:`~numpy.convolve` in a window,
    see `the guide <guide.html>`_ and ``width``.

    .. versionadded:: 1.2
       Something about versions.

    .. note:: Kept advice.

    .. math::

        x = y

    As in::

        code(that, is, left, out)

    Parameters
    ----------
    a : array_like
        The series.

        In two paragraphs.
    width : int
        Of the window.

    Returns
    -------
    smoothed : ndarray
        Less noisy.

    See Also
    --------
    numpy.convolve : The general case.
        sharpen is only described here.
    sharpen, :func:`~scipy.signal.detrend`
    `median` : Robust.
    Prose that is no list of names.

    Notes
    -----
    First note with :math:`e^x` inside.

    >>> not_kept()
    1

    .. [1] A reference.

    References
    ----------
    .. [2] Another reference.

    Examples
    --------
    Take the noise out of three numbers:

    >>> smooth([1, 2, 3])

    Too short.
    """


def test_sections_become_paragraphs_in_order() -> None:
    assert parse_docstring(DOCSTRING, "smooth").paragraphs == (
        ("summary", "Take the noise out of a series ."),
        ("description", "The running mean of `numpy.convolve` in a window, see the guide and `width`."),
        ("description", "Kept advice."),
        ("description", "As in:"),
        ("parameters", "a : array_like The series. In two paragraphs. width : int Of the window."),
        ("returns", "smoothed : ndarray Less noisy."),
        ("notes", "First note with inside."),
        ("examples", "Take the noise out of three numbers:"),
    )


def test_see_also_gives_names_and_no_descriptions() -> None:
    assert parse_docstring(DOCSTRING, "smooth").see_also == (
        "numpy.convolve",
        "sharpen",
        "scipy.signal.detrend",
        "median",
    )


@pytest.mark.parametrize(
    ("docstring", "name", "summary"),
    [
        ("One line.", "f", "One line."),
        ("f(x[, out])\n\nOf a ufunc.", "f", "Of a ufunc."),
        ("y, z = f(x, [n])\n\nOf a wrapper.", "f", "Of a wrapper."),
        ("Thing.f(self, x)\nOf a method.", "f", "Of a method."),
        ("f is not called here.", "f", "f is not called here."),
    ],
)
def test_a_signature_at_the_start_is_left_out(docstring: str, name: str, summary: str) -> None:
    assert parse_docstring(docstring, name).paragraphs == (("summary", summary),)


def test_an_empty_docstring_has_nothing() -> None:
    parsed = parse_docstring("   \n", "f")
    assert parsed.paragraphs == ()
    assert parsed.see_also == ()


def test_a_real_docstring() -> None:
    parsed = parse_docstring(np.polyfit.__doc__ or "", "polyfit")
    assert parsed.paragraphs[0] == ("summary", "Least squares polynomial fit.")
    assert "polyval" in parsed.see_also
