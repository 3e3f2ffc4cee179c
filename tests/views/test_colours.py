"""Methods are told from each other by their colours, for colour-blind eyes too, and from the page behind them."""

from itertools import combinations

import numpy as np
import pytest

from uge_core import registry
from uge_core.arrays import Float64
from uge_core.runs.names import method_class

OWN = ("none", "uge-w", "uge-r", "uge-c", "uge-o", "uge-ok", "uge-ork", "uge-l", "uge-g", "uge-a")
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(color: str) -> Float64:
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light: Float64) -> Float64:
    ratio = TO_XYZ @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(a: str, b: str) -> float:
    dark, light = sorted(float(TO_XYZ[1] @ linear(c)) for c in (a, b))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("eyes", EYES)
def test_the_papers_methods_and_ours_have_colours_of_their_own(eyes: str) -> None:
    colors = {name: method_class(name).color for name in OWN}
    assert set(OWN) <= set(registry.names("debias.methods")) and len(set(colors.values())) == len(OWN)
    for a, b in combinations(OWN, 2):
        apart = float(np.linalg.norm(lab(EYES[eyes] @ linear(colors[a])) - lab(EYES[eyes] @ linear(colors[b]))))
        assert apart > 8, (a, b, apart)


@pytest.mark.parametrize("name", registry.names("debias.methods"))
def test_every_mark_is_seen_on_a_light_and_a_dark_page(name: str) -> None:
    method = method_class(name)
    behind = ("#FFFFFF", "#181715")
    # Colours of the palette that are too pale on white are carried by the mark's edge in ink.
    pale = {"#56B4E9", "#E69F00"}
    assert method.color in pale or all(contrast(method.color, page) >= 3 for page in behind)
