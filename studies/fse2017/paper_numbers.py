"""What the paper reported: its own numbers, typed from Figures 1, 2 and 3 and section 5.4.

Galhotra, Brun and Meliou, "Fairness testing: testing software for discrimination", ESEC/FSE 2017.
These are the only numbers of the report that do not come from the run.
"""

from __future__ import annotations

BELOW = 0.0001  # printed as "< 0.01%"

# instance → characteristic → (group, causal), in per cent
FIGURE_1: dict[str, dict[str, tuple[float, float]]] = {
    "A-credit-gender": {"gender": (3.78, 3.98)},
    "A-census-gender": {"race": (2.10, 2.25), "gender": (3.80, 3.80)},
    "A-census-race": {"race": (2.10, 1.13), "gender": (8.90, 7.20)},
    "B-credit-gender": {"gender": (0.80, 2.30)},
    "B-census-gender": {"race": (36.55, 38.40), "gender": (0.52, 11.27)},
    "B-census-race": {"race": (2.28, 1.78), "gender": (5.84, 5.80)},
    "C-credit-gender": {"gender": (0.35, 0.18)},
    "C-census-gender": {"race": (2.43, 2.91), "gender": (BELOW, BELOW)},
    "C-census-race": {"race": (0.08, 0.08), "gender": (35.20, 34.50)},
    "D-credit-gender": {"gender": (0.23, 0.29)},
    "D-census-gender": {"race": (0.21, 0.26), "gender": (BELOW, BELOW)},
    "D-census-race": {"race": (0.12, 0.13), "gender": (4.64, 4.94)},
    "E-credit": {"gender": (0.32, 0.37)},
    "E-census": {"race": (0.74, 0.85), "gender": (0.26, 0.32)},
    "F-credit": {"gender": (0.05, 0.06)},
    "F-census": {"race": (0.11, 0.05), "gender": (BELOW, BELOW)},
    "G-credit": {"gender": (3.94, 2.41)},
    "G-census": {"race": (0.02, 2.80), "gender": (BELOW, BELOW)},
    "H-credit": {"gender": (BELOW, BELOW)},
    "H-census": {"race": (BELOW, 0.01), "gender": (BELOW, BELOW)},
}

# instance, sensitive set, causal score in per cent
FIGURE_2: list[tuple[str, tuple[str, ...], float]] = [
    ("A-census-race", ("gender", "race"), 13.7),
    ("B-census-gender", ("gender", "marital", "race"), 77.2),
    ("B-census-gender", ("gender", "race"), 52.5),
    ("B-census-gender", ("gender",), 11.2),
    ("B-census-gender", ("marital",), 36.1),
    ("B-census-gender", ("race",), 36.6),
    ("B-census-race", ("gender",), 5.8),
    ("C-credit-gender", ("age",), 7.6),
    ("C-census-race", ("age",), 25.9),
    ("C-census-race", ("gender",), 35.2),
    ("C-census-race", ("gender", "race"), 41.5),
    ("C-census-gender", ("marital",), 35.2),
    ("D-census-gender", ("marital",), 12.9),
    ("D-census-gender", ("country",), 7.6),
    ("D-census-race", ("marital",), 16.2),
    ("D-census-race", ("marital", "race"), 52.3),
    ("E-census", ("marital",), 7.9),
    ("F-census", ("country", "race"), 98.1),
    ("F-census", ("race", "relation"), 76.3),
    ("G-census", ("relation",), 14.8),
]

# instance → measure → (tests without pruning, tests with pruning)
FIGURE_3: dict[str, dict[str, tuple[int, int]]] = {
    "A-credit-gender": {"group": (934_230, 167_420), "causal": (29_623, 15_764)},
    "A-census-race": {"group": (7_033_150, 672), "causal": (215_000, 457)},
    "B-credit-gender": {"group": (934_230, 3_413), "causal": (29_623, 1_636)},
    "B-census-race": {"group": (6_230_000, 80_100), "causal": (20_500, 6_300)},
    "C-credit-gender": {"group": (934_230, 113), "causal": (29_623, 72)},
    "C-census-race": {"group": (7_730_120, 75_140), "causal": (235_625, 6_600)},
    "D-credit-gender": {"group": (934_230, 720), "causal": (29_623, 472)},
    "D-census-race": {"group": (7_730_120, 6_600_462), "causal": (235_625, 200_528)},
    "E-credit": {"group": (934_230, 145), "causal": (29_623, 82)},
    "E-census": {"group": (7_730_120, 84_040), "causal": (235_625, 7_900)},
    "F-credit": {"group": (934_230, 3_410), "causal": (29_623, 2_647)},
    "F-census": {"group": (6_123_000, 461), "causal": (205_000, 279)},
    "G-credit": {"group": (934_230, 187), "causal": (29_623, 152)},
    "G-census": {"group": (7_730_120, 5_160_125), "causal": (235_625, 190_725)},
    "H-credit": {"group": (934_230, 412_020), "causal": (29_623, 10_140)},
    "H-census": {"group": (1_530_000, 1_213_500), "causal": (510_000, 324_582)},
}
MEANS = {
    "group": {"arithmetic": 2_849.0, "geometric": 151.0},
    "causal": {"arithmetic": 148.0, "geometric": 26.4},
}

# instance → (θ, tests) as section 5.4 tells them
SWEEP: dict[str, list[tuple[float, int]]] = {
    "B-credit-gender": [(0.7, 3_413), (0.6, 10)],
    "F-credit": [(0.6, 920), (0.5, 10)],
}
