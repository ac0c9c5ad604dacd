"""Every port failing in every way at every exchange of recorded flows."""

from trust.faults._matrix import DRIVERS, Matrix, run_matrix
from trust.faults._ports import FAULTS
from trust.faults._scenes import SCENES

__all__ = ["DRIVERS", "FAULTS", "SCENES", "Matrix", "run_matrix"]
