"""Cutting answers into steps, and putting new text in a block's place."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcache._stitch import renumber, replace, segment
from stepcache._types import Block, Step

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)
MARKUP = st.lists(
    st.sampled_from(
        [
            *("Step 1: add\n", "Step 2\n", "1. one\n", "2) two\n", "- dot\n", "  - inner\n", "\n"),
            *("```\n", "~~~~\n", "$$\n", "\\[\n", "\\]\n", "\\begin{align}\n", "\\end{align}\n"),
            *("| a | b |\n", "|---|---|\n", "# Head\n", "**Bold**\n", "===\n", "x = 3\n", "\r\n"),
            *("第1步\n", "\x00", "\ud800", "\r", "    code\n", "\t", "text ", "\u2028", "---\n"),
        ]
    ),
    max_size=40,
).map("".join)


def joined(steps: tuple[Step, ...]) -> str:
    return "".join(step.text for step in steps)


def texts(answer: str) -> list[str]:
    return [step.text for step in segment(answer)]


def kinds(answer: str) -> list[str]:
    return [step.kind for step in segment(answer)]


@given(st.one_of(ANY_TEXT, MARKUP))
def test_law_3_segmentation_is_lossless(text: str) -> None:
    """The steps of any text join to exactly that text and are numbered in order, none empty."""
    steps = segment(text)
    assert joined(steps) == text
    assert [step.index for step in steps] == list(range(len(steps)))
    assert all(step.text for step in steps)


@given(MARKUP)
def test_white_space_never_starts_a_step(text: str) -> None:
    """Every step but the first begins with something visible or its own indent."""
    for step in segment(text)[1:]:
        assert step.text.replace("\r", "\n").split("\n")[0].strip()


def test_the_empty_text_has_no_steps() -> None:
    """Nothing in, nothing out."""
    assert segment("") == ()


def test_white_space_alone_is_one_blank_step() -> None:
    """A text without anything visible is kept as one step of kind blank."""
    assert segment(" \r\n\n\t") == (Step(index=0, text=" \r\n\n\t", kind="blank"),)


def test_paragraphs_are_steps_with_their_trailing_blank_lines() -> None:
    """Blank lines go to the paragraph before them, leading ones to the first."""
    assert texts("\nFirst part.\r\n\r\n\r\nSecond part.\n") == [
        "\nFirst part.\r\n\r\n\r\n",
        "Second part.\n",
    ]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Step 1: Begin.", "Step 2: End."),
        ("**Step 1.** Begin.", "**Step 2.** End."),
        ("### Step 1 - Begin", "### Step 2 - End"),
        ("Schritt 1: Anfang.", "Schritt 2: Ende."),
        ("Étape 1 : début.", "Étape 2 : fin."),
        ("Paso 1: inicio.", "Paso 2: fin."),
        ("Шаг 1: начало.", "Шаг 2: конец."),
        ("第一步：开始。", "第二步：结束。"),
        ("步骤1：开始。", "步骤2：结束。"),
        ("ステップ1：開始", "ステップ2：終了"),
        ("1단계: 시작", "2단계: 끝"),
        ("1. Begin", "2. End"),
        ("1) Begin", "2) End"),
        ("(1) Begin", "(2) End"),
        ("1、开始", "2、结束"),
        ("① Begin", "② End"),
        ("Step\u00a01. Begin", "Step\u00a02. End"),
    ],
)
def test_markers_that_count_start_steps(one: str, two: str) -> None:
    """Counted markers of many languages and styles cut, and what is between them does not."""
    answer = f"Intro\n\n{one}\n\nfree paragraph\n\n{two}\n\nOutro"
    assert texts(answer) == [
        "Intro\n\n",
        f"{one}\n\nfree paragraph\n\n",
        f"{two}\n\n",
        "Outro",
    ]
    assert kinds(answer)[1:3] == ["item", "item"]


def test_an_outline_outranks_lists_inside_its_steps() -> None:
    """A list that counts from one inside a step does not cut it."""
    answer = "Step 1: list\n1. a\n2. b\n\nStep 2: more\n- c\n\nEnd."
    assert texts(answer) == ["Step 1: list\n1. a\n2. b\n\n", "Step 2: more\n- c\n\n", "End."]


def test_a_heading_ends_an_outline() -> None:
    """Two counted lists under two headings are two lists."""
    answer = "# A\n1. a\n2. b\n\n# B\n1. c\n2. d\n"
    assert texts(answer) == ["# A\n", "1. a\n", "2. b\n\n", "# B\n", "1. c\n", "2. d\n"]


def test_a_bulleted_item_keeps_what_is_indented_under_it() -> None:
    """Nested items, indented paragraphs and indented code belong to their item."""
    answer = "- one\n  - inner\n\n  more\n  ```\n  - code\n  ```\n- two\n\nEnd\n"
    assert texts(answer) == [
        "- one\n  - inner\n\n  more\n  ```\n  - code\n  ```\n",
        "- two\n\n",
        "End\n",
    ]


@pytest.mark.parametrize("sign", ["-", "*", "+", "•"])
def test_bullets_of_every_sign_start_steps(sign: str) -> None:
    """A list right under its paragraph is cut off it."""
    assert texts(f"All of:\n{sign} a\n{sign} b") == ["All of:\n", f"{sign} a\n", f"{sign} b"]


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_a_code_fence_is_one_step(fence: str) -> None:
    """Blank lines, markers and shorter fences inside a fence do not cut."""
    inner = "``\n\n1. a\n\n2. b\n# c\n"
    code = f"{fence}text\n{inner}{fence}\n"
    steps = segment(f"See:\n{code}Then.")
    assert [step.text for step in steps] == ["See:\n", code, "Then."]
    assert steps[1].kind == "code"


def test_an_unclosed_fence_runs_to_the_end() -> None:
    """As in Markdown, what follows an open fence is code."""
    assert texts("A\n\n```\nb\n\nc\n~~~\n") == ["A\n\n", "```\nb\n\nc\n~~~\n"]


def test_a_fence_closes_only_by_as_many_of_its_own_signs() -> None:
    """A shorter or different fence inside is content."""
    code = "````\n```\n~~~~\n````\n"
    assert texts(f"{code}\nend") == [f"{code}\n", "end"]


@pytest.mark.parametrize(
    "maths",
    [
        "$$\n2x = 10\n\nx = 5\n$$\n",
        "\\[\n2x = 10\n\nx = 5\n\\]\n",
        "\\begin{align*}\n2x &= 10\n\nx &= 5\n\\end{align*}\n",
        "$$2x = 10$$\n",
        "\\[\n2x = 10 \\\\[4pt]\n\nx = 5\n\\]\n",
    ],
)
def test_display_maths_are_one_step(maths: str) -> None:
    """A display stays whole, blank lines and all."""
    steps = segment(f"So:\n\n{maths}\nDone.")
    assert [step.text for step in steps] == ["So:\n\n", f"{maths}\n", "Done."]
    assert steps[1].kind == "math"


def test_an_unclosed_display_does_not_swallow_the_answer() -> None:
    """Without its closing sign a display is an ordinary line."""
    assert texts("\\[\nx\n\ny\n\n\\[ z \\]\n") == ["\\[\nx\n\n", "y\n\n", "\\[ z \\]\n"]


def test_a_table_is_one_step() -> None:
    """Header, rule and rows stay together."""
    table = "| a | b |\n|---|:-:|\n| 1 | 2 |\n"
    steps = segment(f"See\n{table}\nEnd")
    assert [step.text for step in steps] == ["See\n", f"{table}\n", "End"]
    assert steps[1].kind == "table"


@pytest.mark.parametrize("head", ["## Part", "**Part**", "Part\n===="])
def test_headings_start_steps(head: str) -> None:
    """Hash, bold and underlined headings cut, and keep the text directly under them."""
    steps = segment(f"Before.\n\n{head}\nunder\n\nafter")
    assert [step.text for step in steps] == ["Before.\n\n", f"{head}\nunder\n\n", "after"]
    assert steps[1].kind == "heading"


def test_dashes_below_a_paragraph_are_no_heading() -> None:
    """A rule right below running text does not cut its last line off."""
    assert texts("one line,\nand another\n-----\n\nend") == [
        "one line,\nand another\n-----\n\n",
        "end",
    ]


@pytest.mark.parametrize("rule", ["---", "***", "─────", "====="])
def test_a_rule_between_paragraphs_ends_the_first(rule: str) -> None:
    """A line that only separates belongs to what it closes."""
    assert texts(f"one\n\n{rule}\ntwo") == [f"one\n\n{rule}\n", "two"]


def test_display_maths_inside_a_sentence_stay_with_it() -> None:
    """A display opened at a line's end does not part the paragraph it belongs to."""
    answer = "We get \\[\n2x = 10\n\nx = 5\n\\] and are done.\n\nEnd."
    assert texts(answer) == [answer[:-4], "End."]


def test_without_blank_lines_each_calculation_line_is_a_step() -> None:
    """A derivation written one line a step is cut at its lines."""
    assert texts("2x + 3 = 13\n2x = 10\nx = 5") == ["2x + 3 = 13\n", "2x = 10\n", "x = 5"]


def test_without_blank_lines_each_sentence_line_is_a_step() -> None:
    """Lines that end where a sentence ends, or were broken early on purpose, are steps."""
    answer = (
        "She sold 3 * 4 = 12 pens\nThen she sold half as many again, which is 6 pens more\nTotal 18"
    )
    assert len(segment(answer)) == 3


def test_wrapped_lines_of_one_paragraph_are_one_step() -> None:
    """A paragraph wrapped at a column is not cut at its line ends."""
    answer = (
        "The answer to this needs a longer look at what the words of the\n"
        "question say, because the person who wrote it put the important\n"
        "part of it into the second half and left the first one rather\n"
        "empty of anything that could be used"
    )
    assert len(segment(answer)) == 1


def test_replace_cuts_out_the_block_and_numbers_anew() -> None:
    """New texts stand in the block's place; what is around it is untouched."""
    steps = segment("1. a\n2. b\n3. c\n")
    new = replace(steps, Block(start=1, stop=2), ["2. x\n", "", "extra\n"])
    assert [(s.index, s.text, s.kind) for s in new] == [
        (0, "1. a\n", "item"),
        (1, "2. x\n", "item"),
        (2, "extra\n", "prose"),
        (3, "3. c\n", "item"),
    ]


def test_replace_refuses_a_block_beyond_the_steps() -> None:
    """A block that does not fit is an error, not a silent cut."""
    with pytest.raises(ValueError, match="there are 1"):
        replace(segment("a"), Block(start=0, stop=2), ["b"])


@given(MARKUP.filter(bool), st.data())
def test_replacing_a_block_by_itself_changes_nothing(text: str, data: st.DataObject) -> None:
    """Cut and put back is the identity."""
    steps = segment(text)
    start = data.draw(st.integers(0, len(steps) - 1))
    stop = data.draw(st.integers(start + 1, len(steps)))
    block = Block(start=start, stop=stop)
    assert replace(steps, block, [s.text for s in steps[start:stop]]) == steps


def test_renumber_counts_from_zero() -> None:
    """Indices follow the order given."""
    steps = segment("a\n\nb\n\nc")
    assert [s.index for s in renumber(steps[1:])] == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 200_000,
        "\\[\n" * 60_000,
        "\\begin{a}\n" * 20_000,
        "|-" * 100_000 + "\n" + "|-" * 100_000 + "x",
        "```\n" * 50_000,
        "1. a\n" * 40_000,
        "*" * 200_000,
        "# 1. a\n1) b\n" * 15_000,
    ],
    ids=["blank", "open", "begin", "rule", "fence", "items", "stars", "mixed"],
)
def test_law_10_hostile_texts_take_linear_time(text: str) -> None:
    """Texts made to provoke repeated scanning are cut in time, without a loss."""
    begin = time.process_time()
    steps = segment(text)
    assert time.process_time() - begin < 20
    assert joined(steps) == text
