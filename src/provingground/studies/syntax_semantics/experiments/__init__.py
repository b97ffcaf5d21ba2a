"""One Experiment per theorem, control or figure: the grid, what it should show, its drawing."""

from .beyond import IMBALANCE, OUTPUT_BIAS, VARIANTS
from .gate import ABL_TEMP, ETA_C, PRESETS, SCAN_UR
from .paper import COR1_BOUND, COR1_ORDER, FIG3, LITERAL, LITERAL_DECAY, PROP2
from .theorems import THM2, THM3

# In this order experiments find cells of others in the store, and share compiled programs.
EXPERIMENTS = (
    THM3, ABL_TEMP, ETA_C, SCAN_UR, THM2, PRESETS, OUTPUT_BIAS, IMBALANCE, VARIANTS, COR1_ORDER,
    COR1_BOUND, LITERAL, LITERAL_DECAY, FIG3, PROP2,
)  # fmt: skip
