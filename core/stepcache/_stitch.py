"""Cut an answer into steps without losing a character, and put new text in a block's place. Pure.

How an answer is cut, in order of strength:

1. Code fences, tables and display maths are one piece, whatever is inside.
2. An *outline* (``Step 1 .. Step 2 ..``, ``1. .. 2. ..``, ``## 1 .. ## 2 ..``) cuts at its markers;
   all between two of its markers belongs to the earlier one, however it is laid out.
3. Headings, top-level list items and paragraphs start a step; what is indented under an item
   belongs to it.
4. A text without any blank line is cut at its lines, except where a line was only wrapped.

White space belongs to the step before it; at the very start, to the first step.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from stepcache._types import Block, Step

__all__ = ["renumber", "replace", "segment"]

# Alternatives are tried at line ends only, so finding all lines is linear.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_BULLET = re.compile(r"[-*+•‣◦▪–]\s")
_NUMBER = re.compile(r"[(（]?([0-9０-９]{1,3})(?:[.)．）](?=\s|$|[^0-9０-９\x00-\x7f])|[、)）])")
_CIRCLED = {chr(0x2460 + i): i + 1 for i in range(20)}
_STEP_WORDS = (
    "step|étape|etape|schritt|paso|passo|etapa|stap|steg|trin|vaihe|krok|adım|bước|langkah|"
    "шаг|крок|βήμα|الخطوة|خطوة|चरण|步骤|步驟|ステップ|手順|단계"
)
_STEP = re.compile(
    rf"(?:(?:{_STEP_WORDS})\s{{0,3}}[#№]?([0-9０-９]{{1,3}}|[一二三四五六七八九十])|"
    r"第\s?([0-9０-９]{1,3}|[一二三四五六七八九十])\s?步|([0-9]{1,3})\s?단계)(?![\w%])",
    re.IGNORECASE,
)
_HAN = {sign: i + 1 for i, sign in enumerate("一二三四五六七八九十")}
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([A-Za-z]{1,24}\*?)\}")
_DISPLAY = re.compile(r"(?<!\\)\\[\[\]]")
"""Not ``\\\\[``, which ends a row and spaces the next."""
_WRAP_WIDTHS = range(50, 121)
"""Characters a wrapped paragraph may be wide; lines of anything else were broken on purpose."""
_SHALLOW = 2


def segment(text: str) -> tuple[Step, ...]:
    """The steps of an answer; their texts join to it exactly, for any text.

    Linear in the length of the text. The empty text has no steps; white space alone is one step of
    kind ``blank``.
    """
    if not text:
        return ()
    lines = _LINE.findall(text)
    starts = _Cutter(lines).starts()
    if not starts:
        return (Step(index=0, text=text, kind="blank"),)
    bounds = [0, *(line for line, _ in starts[1:]), len(lines)]
    return tuple(
        Step(index=i, text="".join(lines[bounds[i] : bounds[i + 1]]), kind=kind)
        for i, (_, kind) in enumerate(starts)
    )


def renumber(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The same steps with the indices 0, 1, 2, ..."""
    return tuple(
        step if step.index == i else Step(index=i, text=step.text, kind=step.kind)
        for i, step in enumerate(steps)
    )


def replace(steps: Sequence[Step], block: Block, texts: Sequence[str]) -> tuple[Step, ...]:
    """The steps with a block cut out, new texts in its place, numbered anew.

    Args:
        texts: One per new step; empty ones are left out. A new step takes the kind of the step
            it stands in for, ``prose`` beyond the block's end.

    Raises:
        ValueError: The block reaches beyond the steps.
    """
    if block.stop > len(steps):
        raise ValueError(f"the block ends at step {block.stop}, but there are {len(steps)}")
    old = steps[block.start : block.stop]
    new = [
        Step(index=0, text=text, kind=old[i].kind if i < len(old) else "prose")
        for i, text in enumerate(texts)
        if text
    ]
    return renumber([*steps[: block.start], *new, *steps[block.stop :]])


@dataclass(slots=True)
class _Atom:
    """Lines that are never parted: one line, or a fence, table or display."""

    first: int
    last: int
    kind: str
    indent: int
    gap: bool
    """A blank line, or nothing, stands before it."""
    family: str = ""
    """Of a numbered marker; equal families may form an outline."""
    number: int = 0
    level: int = 0
    """Of a heading, 1 the highest; 7 for a bold line; 0 for no heading."""


class _Cutter:
    """One pass over the lines to find atoms, one over the atoms to find where steps start."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.closers = _closers(lines)

    def starts(self) -> list[tuple[int, str]]:
        """First line and kind of every step."""
        atoms = self.atoms()
        if not atoms:
            return []
        inner, member = _outlines(atoms)
        by_line = len(atoms) > 1 and not any(atom.gap for atom in atoms[1:])
        width = self.width(atoms) if by_line else 0
        found: list[tuple[int, str]] = []
        item: _Atom | None = None
        before: _Atom | None = None
        for i, atom in enumerate(atoms):
            if member[i]:
                item = atom
                found.append((atom.first, "item"))
            elif not inner[i]:
                if item and before and self.leaves(item, before, atom):
                    item = None
                if before is None or self.cuts(item, before, atom, by_line, width):
                    found.append((atom.first, atom.kind))
                    item = atom if atom.kind == "item" else None
            before = atom
        return found

    def leaves(self, item: _Atom, before: _Atom, atom: _Atom) -> bool:
        """Is the atom no longer part of the open item?"""
        if atom.kind == "heading":
            return True
        if atom.kind == "code" and self.lines[before.last - 1].rstrip().endswith((":", "：")):
            return False
        if atom.kind == "item":
            nested = atom.indent >= item.indent + _SHALLOW
            listed = bool(item.family) and not atom.family and not atom.gap
            return not (nested or listed)
        return atom.gap and atom.indent < item.indent + _SHALLOW

    def cuts(
        self, item: _Atom | None, before: _Atom, atom: _Atom, by_line: bool, width: int
    ) -> bool:
        if item:
            return by_line and atom.indent <= item.indent and atom.kind != "item"
        whole = atom.kind in ("heading", "item", "code", "table")
        if whole or atom.gap or before.kind in ("code", "table"):
            return True
        return by_line and (atom.kind == "math" or self.deliberate(before, atom, width))

    def deliberate(self, before: _Atom, atom: _Atom, width: int) -> bool:
        """Was the line break between two lines meant, rather than made by wrapping a paragraph?"""
        line = self.lines[before.last - 1].rstrip()
        if before.kind != "prose" or line.endswith(_TERMINAL) or width not in _WRAP_WIDTHS:
            return True
        after = self.lines[atom.first].lstrip()
        return "=" in line and not after[0].islower()

    def width(self, atoms: Sequence[_Atom]) -> int:
        """The width, in characters, that the text's paragraphs are wrapped to; 0 if they are not.

        Wrapping leaves no line to which the next line's first word could still have been added,
        except where a sentence ended.
        """
        prose = [self.lines[atom.first].strip() for atom in atoms if atom.kind == "prose"]
        width = max(map(len, prose), default=0)
        if width not in _WRAP_WIDTHS:
            return 0
        for line, after in pairwise(prose):
            room = width - len(line) - 1
            if not line.endswith(_TERMINAL) and len(after.split(maxsplit=1)[0]) <= room:
                return 0
        return width

    def atoms(self) -> list[_Atom]:
        """Everything but blank lines and rules, in order."""
        atoms: list[_Atom] = []
        at, gap = 0, True
        while at < len(self.lines):
            line = self.lines[at].strip()
            if not line or (gap and _is_rule(line)):
                at, gap = at + 1, True
                continue
            atom = self.atom(at, line, gap)
            atoms.append(atom)
            at, gap = atom.last, False
        return atoms

    def atom(self, at: int, line: str, gap: bool) -> _Atom:
        atom = _Atom(first=at, last=at + 1, kind="prose", indent=_indent(self.lines[at]), gap=gap)
        if line.startswith(("```", "~~~")) and self.fence(atom, line):
            return atom
        if "|" in line and self.table(atom):
            return atom
        _mark(atom, line)
        if not atom.level and atom.kind == "prose" and self.underlined(at, gap):
            atom.kind, atom.level, atom.last = "heading", 2, at + 2
        self.display(atom, line)
        return atom

    def fence(self, atom: _Atom, line: str) -> bool:
        sign = line[0]
        rest = line.lstrip(sign)
        if sign in rest and sign == "`":
            return False
        size = len(line) - len(rest)
        end = atom.first + 1
        while end < len(self.lines):
            body = self.lines[end].strip()
            end += 1
            if body.startswith(line[:3]) and len(body) >= size and not body.strip(sign):
                break
        atom.kind, atom.last = "code", end
        return True

    def table(self, atom: _Atom) -> bool:
        end = atom.first + 1
        if end >= len(self.lines) or "|" not in self.lines[end]:
            return False
        under = self.lines[end].strip()
        ruled = "-" in under and not under.strip("|-:+ \t")
        if not ruled and not (_boxed(self.lines[atom.first]) and _boxed(self.lines[end])):
            return False
        while end < len(self.lines) and "|" in self.lines[end]:
            end += 1
        atom.kind, atom.last = "table", end
        return True

    def underlined(self, at: int, gap: bool) -> bool:
        under = self.lines[at + 1].strip() if at + 1 < len(self.lines) else ""
        # Dashes under the last line of a longer paragraph are a rule below it.
        return len(under) > 2 and not under.strip("=-" if gap else "=") and _is_rule(under)

    def display(self, atom: _Atom, line: str) -> None:
        """Extend an atom over the display maths that starts in its line."""
        if atom.kind == "prose" and line.startswith(("$$", "\\[", "\\begin{")):
            atom.kind = "math"
        signs = _DISPLAY.findall(line)
        if signs and signs[-1] == "\\[":
            self.extend(atom, "\\]", "\\[")
        elif "$$" in line and line.count("$$") % 2:
            self.extend(atom, "$$", "")
        elif "\\begin{" in line:
            opened = [name for word, name in _ENVIRONMENT.findall(line) if word == "begin"]
            if opened and f"\\end{{{opened[0]}}}" not in line:
                self.extend(atom, f"\\end{{{opened[0]}}}", "")

    def extend(self, atom: _Atom, closer: str, opener: str) -> None:
        end = _next(self.closers.get(closer, ()), atom.last)
        if end is None:
            return
        again = _next(self.closers.get(opener, ()), atom.last)
        # A second opener before the closer: the first was never closed.
        if again is None or again > end:
            atom.last = end + 1


_TERMINAL = (".", "!", "?", ":", ";", "。", "！", "？", "：", "；", "…", "।", "؟", '."', ".)")


def _closers(lines: Sequence[str]) -> dict[str, list[int]]:
    """Line numbers, ascending, of what closes a display; and of ``\\[``, where one starts anew."""
    found: dict[str, list[int]] = {}
    for at, line in enumerate(lines):
        if "$$" in line:
            found.setdefault("$$", []).append(at)
        if "\\" not in line:
            continue
        if sign := _DISPLAY.search(line):
            found.setdefault(sign.group(), []).append(at)
        if "\\end{" in line:
            for word, name in _ENVIRONMENT.findall(line):
                if word == "end":
                    found.setdefault(f"\\end{{{name}}}", []).append(at)
    return found


def _next(positions: Sequence[int], at: int) -> int | None:
    i = bisect_left(positions, at)
    return positions[i] if i < len(positions) else None


def _outlines(atoms: Sequence[_Atom]) -> tuple[list[bool], list[bool]]:
    """Which atoms lie inside an outline's step, and which begin one."""
    inner, member = [False] * len(atoms), [False] * len(atoms)
    runs = _runs(atoms)
    # Words like "Step" outrank numbered headings, which outrank plain numbers: an outer outline
    # swallows lists that count inside its steps.
    for _, run in sorted(runs, key=lambda pair: (pair[0], pair[1][0])):
        if inner[run[0]] or inner[run[-1]]:
            continue
        for at in range(run[0], run[-1]):
            inner[at] = True
            member[at] = False
        for at in run:
            inner[at], member[at] = False, True
    return inner, member


def _runs(atoms: Sequence[_Atom]) -> list[tuple[int, list[int]]]:
    """Every run of markers that count up by one, with its rank (0 the strongest)."""
    open_runs: dict[str, list[int]] = {}
    done: list[tuple[int, list[int]]] = []

    def close(family: str) -> None:
        run = open_runs.pop(family)
        if len(run) > 1:
            rank = 0 if family.startswith("step") else 1 if atoms[run[0]].level else 2
            done.append((rank, run))

    for i, atom in enumerate(atoms):
        if atom.family:
            run = open_runs.get(atom.family)
            if run and atom.number == atoms[run[-1]].number + 1:
                run.append(i)
                continue
            if run:
                close(atom.family)
            open_runs[atom.family] = [i]
        if 0 < atom.level < 7:
            # A heading ends every outline that is not made of deeper-reaching headings.
            for family in [f for f, run in open_runs.items() if _ends(atoms[run[-1]], atom)]:
                close(family)
    for family in list(open_runs):
        close(family)
    return done


def _ends(marker: _Atom, heading: _Atom) -> bool:
    return marker is not heading and not heading.level > marker.level > 0


def _mark(atom: _Atom, line: str) -> None:
    """Note in the atom whether its line is a heading, an item, a numbered marker."""
    if line[0] == "#":
        body = line.lstrip("#")
        level = len(line) - len(body)
        if level <= 6 and (not body or body[0] in " \t\u3000"):
            atom.kind, atom.level = "heading", level
            line = body.strip() or "#"
    bold = line.startswith(("**", "__"))
    if bold and not atom.level and _bold_alone(line):
        atom.kind, atom.level = "heading", 7
    bare = line.lstrip("*_ ") if bold else line
    style = f"{atom.level}{'b' if bold else ''}"
    if step := _STEP.match(bare):
        atom.number = _value(next(group for group in step.groups() if group))
        atom.family = f"step{style}"
    elif number := _NUMBER.match(bare):
        atom.number = _value(number.group(1))
        atom.family = f"number{style}{number.group(0).replace(number.group(1), '', 1)}"
    elif bare[:1] in _CIRCLED:
        atom.number, atom.family = _CIRCLED[bare[0]], f"circled{style}"
    if not atom.level and (atom.family or _BULLET.match(line)):
        atom.kind = "item"
    if atom.family and atom.indent >= 2:
        # Indented counts are somebody's nested list; they never outrank what is around them.
        atom.family = ""


def _value(digits: str) -> int:
    return _HAN[digits] if digits in _HAN else int(digits)


def _bold_alone(line: str) -> bool:
    sign = line[:2]
    body = line.rstrip(" :：")
    return len(body) > 4 and body.endswith(sign) and sign not in body[2:-2]


def _boxed(line: str) -> bool:
    return len(line) > 2 and line.lstrip()[0] == "|" == line.rstrip()[-1]


def _is_rule(line: str) -> bool:
    return len(line) > 2 and line[0] in "-*_=─━═—" and not line.strip(line[0])


def _indent(line: str) -> int:
    """Columns of white space before the text; a tab counts as four."""
    blank = line[: len(line) - len(line.lstrip())]
    return len(blank) + 3 * blank.count("\t")
