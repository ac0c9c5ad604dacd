"""Linear equations as people write them, solved and verified in exact arithmetic.

``_lex`` and ``_scan`` find the mathematics in a text, ``_parse`` and ``_algebra`` say what it is,
``_prose`` and ``_lexicon`` what the words around it claim,
``_request`` reads a prompt into a ``_problem``; ``_verify`` and ``_check`` hold answers against it,
``_adapt`` and ``_roles`` re-derive them for new numbers, ``_solve`` writes one from nothing.
"""

from stepcache.tasks.linear_equation._task import LinearEquationTask

__all__ = ["LinearEquationTask"]
