"""One target under a coverage-guided fuzzer: ``python -m trust._guided TARGET [libFuzzer flags]``.

Ends non-zero at the first crash, wrong result or stuck input, whose bytes the fuzzer prints.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def main() -> None:
    """Instrument the product, then hand the target to the fuzzer."""
    atheris: Any = import_module("atheris")
    name, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["stepcache", "langchain_stepcache"]):
        from trust.targets import ALL
    (target,) = [each for each in ALL if each.name == name]
    read: Any = target.read

    def one(data: bytes) -> None:
        wrong = target.check(read(data))
        if wrong is not None:
            raise AssertionError(wrong)

    atheris.Setup([sys.argv[0], *flags], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
