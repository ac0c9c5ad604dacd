"""Writes prompts and answers of ``mathematics_dataset`` as JSON Lines.

Runs by itself, in an environment of its own: the package needs a sympy that other tools have left
behind. See ``test_mathematics_dataset.py``.

Usage: python generate_mathematics_dataset.py OUTPUT COUNT SEED
"""

from __future__ import annotations

import json
import random
import sys
import warnings

KINDS = ("linear_1d", "linear_1d_composed", "linear_2d", "linear_2d_composed")


def main(output: str, count: int, seed: int) -> None:
    """Write ``count`` records of each kind."""
    import numpy as np

    warnings.simplefilter("ignore")
    # The names that numpy has dropped since the package was written.
    for name, kind in (("object", object), ("int", int), ("float", float), ("bool", bool)):
        setattr(np, name, kind)
    from mathematics_dataset.modules import algebra

    random.seed(seed)
    np.random.seed(seed)
    modules = algebra.train(lambda entropy: entropy)
    with open(output, "w", encoding="utf-8") as lines:
        for kind in KINDS:
            for _ in range(count):
                problem = modules[kind]()
                record = {
                    "kind": kind,
                    "prompt": str(problem.question),
                    "answer": str(problem.answer),
                }
                lines.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
