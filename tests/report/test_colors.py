"""Colors that people with other eyes, and printers without color, can tell apart."""

from __future__ import annotations

import itertools
import re
from importlib.resources import files

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from unbounded.results import plot as looks

# Machado, Oliveira & Fernandes (2009), at full severity; grey is luminance.
SEEN = {
    "everybody": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
    "grey": [[0.2126, 0.7152, 0.0722]] * 3,
}  # fmt: skip
LEAST = {"grey": 5.0}  # of lightness alone; else 18, where 2.3 is just noticeable
CSS = (files("unbounded.report") / "web" / "page.css").read_text(encoding="utf-8")


def linear(color):
    values = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(light):
    """CIE L*a*b* of linear sRGB, white D65."""
    to_xyz = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
                       [0.0193339, 0.1191920, 0.9503041]])  # fmt: skip
    x, y, z = (to_xyz @ light) / (to_xyz @ np.ones(3))
    f = [c ** (1 / 3) if c > 0.008856 else 7.787 * c + 16 / 116 for c in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def palettes():
    """Light, dark and print, as the page has them; each with its paper."""
    blocks = re.findall(r"--paper: (#\w{6}).*?((?:--c\d: #\w{6};\s*)+)", CSS, re.DOTALL)
    assert len(blocks) == 3
    return [(paper, re.findall(r"#\w{6}", colors)) for paper, colors in blocks]


def nearest(colors, seen):
    """The least distance between two colors."""
    lights = [np.clip(np.array(SEEN[seen]) @ linear(c), 0.0, 1.0) for c in colors]
    return min(np.linalg.norm(lab(a) - lab(b)) for a, b in itertools.combinations(lights, 2))


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize(("paper", "colors"), palettes())
def test_colors_can_be_distinguished(paper, colors, seen):
    assert nearest(colors, seen) >= LEAST.get(seen, 18.0)


def test_a_common_palette_would_fail():
    usual = ["#0072b2", "#d55e00", "#009e73", "#c0589a", "#b98300", "#3a9bd9", "#55585c"]
    assert nearest(usual, "deuteranopia") < 18.0
    assert nearest(usual, "grey") < 5.0


@pytest.mark.parametrize(("paper", "colors"), palettes())
def test_colors_stand_out_from_the_paper(paper, colors):
    def luminance(color):
        return float(np.dot([0.2126, 0.7152, 0.0722], linear(color)))

    for color in colors:
        a, b = sorted((luminance(color), luminance(paper)))
        assert (b + 0.05) / (a + 0.05) >= 3.0


def test_figures_have_the_colors_of_the_page():
    [_, light], _, [_, printed] = palettes()
    assert list(looks.COLORS) == light == printed


def test_looks_differ_in_more_than_color():
    for i, j in itertools.combinations(range(4), 2):
        a, b = looks.line(i), looks.line(j)
        assert a["linestyle"] != b["linestyle"]
        assert a["marker"] != b["marker"]
    every = [tuple(map(str, looks.line(i).values())) for i in range(12)]
    assert len(set(every)) == 12
