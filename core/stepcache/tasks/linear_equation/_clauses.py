"""Clauses that ask for the solution of an equation, and clauses that may stand beside them.

In each the equation, its unknown and a demanded style stand under their names: ``<equation>``,
``<unknown>``, ``<style-steps>``. The text is in lower case and has one space between words. A
clause may use any plain word, but none says to write a question, to take another equation, or to
check.
"""

from __future__ import annotations

import re
from functools import cache

from stepcache._phrasing import any_of

__all__ = ["UNKNOWN", "asking", "beside", "with_nouns"]

# --- nouns -------------------------------------------------------------------------------------

UNKNOWN = "<unknown>"
_ADJECTIVE = any_of(
    "following given simple basic linear algebraic algebra math maths mathematical first-degree",
    "one-variable single easy little small school homework",
)
_NOUN = any_of(
    "equations? problem exercise question system system_of_equations system_of_linear_equations",
    "proportion puzzle task",
)
_PHRASE = (
    rf"(?:{_ADJECTIVE} ){{0,4}}{_NOUN}"
    rf"(?: {any_of('below above here in_one_unknown in_one_variable')})?"
)
_EQUATIONS = r"<equation>(?:(?:,|;|,? and)? ?<equation>){0,5}"
_NOUNS = re.compile(
    rf"(?P<some>\b(?:an?|one) {_PHRASE}\b(?!\s?[:,]?\s?<equation>))"
    rf"|\b(?:the|this|that|these|my|our|an?|one) {_PHRASE}\b(?:\s?[:,]?\s?{_EQUATIONS})?"
    rf"|\b{_PHRASE}\b\s?[:,]?\s?{_EQUATIONS}"
    rf"|{_EQUATIONS}"
)
_THE = "\x02"
"""What stands for "the following equation: ..." or the equation itself, as often as it is long."""
_A = "\x01"
"""And for "an equation" without one."""
_THING = rf"(?:{_THE}+|it|this|that|these)"
_SOMETHING = rf"(?:{_THE}+|{_A}+|it|this|that|these)"
_RIGHT = any_of("exact correct unique right proper numerical missing unknown required")
_LETTER = r"(?:the )?(?:variable|unknown|number|letter|unknown number|unknown variable)"
_SOUGHT = (
    r"(?:"
    rf"(?:(?:(?:the|its|that|a) )?(?:{_RIGHT} )?(?:values?|number|solution|answer|result) (?:of|"
    rf"for) )?"
    rf"(?:(?:{_LETTER} )?{UNKNOWN}|(?<=of )(?:the |its )?(?:variable|unknown)|(?<=for )the "
    rf"(?:variable|unknown))"
    rf"|(?:(?:the|its|that|this|a) )(?:{_RIGHT} "
    rf")?{any_of('values? number solutions? answer result root unknown')}"
    r")"
)
_ROOT = rf"(?:(?:the|its|a) )?(?:{_RIGHT} )?(?:solutions?|root|answer) (?:of|to|for|in) {_THING}"
_TRUE = (
    rf"(?: {any_of('is be holds? to_be to_hold becomes? will_be')})?"
    rf"(?: {any_of('true correct satisfied valid hold')})?"
)
_RELATES = any_of(
    "in from to for if when where given given_that with so_that such_that satisfying using under",
    "assuming assuming_that provided provided_that for_which by_solving that_satisfies making",
    "which_satisfies that_solves which_solves that_makes which_makes that_would_make so as_in",
)
_TAIL = rf"(?:,? {_RELATES}:? {_THING}{_TRUE})?"
_ASIDE = (
    r"(?: "
    + any_of("together please pls now today algebraically by_hand for_me for_us then carefully")
    + r"){0,3}"
)
_IS = any_of(
    "is are equals equal must_be should_be has_to_be needs_to_be could_be would_be can_be will_be",
    "is_equal_to comes_out_to",
)
_BE = rf"(?: {_IS})?"

# --- clauses that ask --------------------------------------------------------------------------

_SOLVE = any_of("solve resolve work_out figure_out work_through tackle do handle")
_SOLVING = any_of("solving resolving working_out figuring_out working_through tackling")
_FIND = any_of(
    "find find_out determine compute calculate get obtain isolate evaluate give tell state report",
    "return provide show work_out figure_out identify deduce derive recover give_me",
)
_FINDING = any_of(
    "finding determining computing calculating getting obtaining isolating evaluating working_out",
    "figuring_out",
)
_TO = any_of(
    "for to_find to_get to_obtain to_determine to_compute to_isolate and_find and_get and_give",
    "and_determine and_compute and_calculate and_state and_report and_isolate and_tell_me",
    "with_respect_to",
)
_MODAL = any_of("is are must should would will can does do might may could has_to")

_ASKS = (
    rf"(?:{_SOLVE}|(?<=mind ){_SOLVING}|(?<=with ){_SOLVING}|(?<=steps> ){_SOLVING}) {_THING}"
    rf"(?: {_TO}(?: what)? {_SOUGHT}{_BE}"
    rf"(?: (?:on its own|by itself|alone|on one side))?)?{_ASIDE}",
    rf"(?:solve|(?<=mind )solving|(?<=with )solving)(?: it| this)? for {_SOUGHT}{_TAIL}"
    rf"(?:\s?[:,]?\s?{_THE}+)?{_ASIDE}",
    rf"(?:{_FIND}|(?<=mind ){_FINDING}|(?<=with ){_FINDING})(?: (?:me|us))?(?: what| which "
    rf"number)? "
    rf"{_SOUGHT}{_BE}{_TAIL}{_ASIDE}",
    rf"(?:get|isolate) {UNKNOWN}(?: (?:by itself|alone|on its own|on one side))?{_TAIL}{_ASIDE}",
    rf"{_FIND}(?: me)? the (?:number|value) (?:that )?{UNKNOWN} (?:is|has|takes|should be|must be|"
    rf"has to be){_TAIL}",
    r"(?:find|determine|compute|calculate|work out|get|isolate) it",
    UNKNOWN,
    r"solve",
    rf"(?:{_FIND}|(?<=mind ){_FINDING}|(?<=with ){_FINDING})(?: (?:me|us))? {_ROOT}(?: for "
    rf"{_SOUGHT})?{_ASIDE}",
    rf"(?:{_FIND}|(?<=know ))(?: (?:me|us))?\s?which (?:value|number)(?: of)?(?: {_LETTER})?(?: "
    rf"{UNKNOWN})? "
    rf"(?:satisfies|solves|makes) {_THING}{_TRUE}",
    rf"(?:rearrange|transform) {_THING} (?:{_TO}|so as to find) {_SOUGHT}",
    rf"make {UNKNOWN} the subject of {_THING}(?: and (?:give|state|find|tell me) {_SOUGHT})?",
    # Questions.
    rf"(?:what|which)(?:'s| {_MODAL}) {_SOUGHT}(?: (?:be|equal|have to be|need to be))?(?: equal "
    rf"to)?{_TAIL}",
    rf"(?:what|which) (?:is|are|would be) {_ROOT}",
    rf"(?:what|which) (?:(?:values?|number) )?(?:of )?(?:{_LETTER} )?(?:{UNKNOWN} )?"
    rf"(?:makes?|satisf(?:y|ies)|solves?|fulfils?|would make) {_THING}{_TRUE}",
    rf"for (?:what|which) (?:(?:values?|number) )?(?:of )?(?:{_LETTER} )?{UNKNOWN} "
    rf"(?:is|does|do|will|would) {_THING} (?:true|hold|correct|satisfied|be true)",
    rf"(?:what|which) (?:value|number) {_MODAL} {UNKNOWN} "
    rf"{any_of('have need take be equal need_to_be have_to_be need_to_have')}"
    rf"(?: (?:so that|such that|for|if|when|to make|in|given) {_THING}{_TRUE})?",
    rf"(?:what|which) (?:value|number) (?:is|are|for) {UNKNOWN}{_TAIL}",
    rf"how much (?:is|does) {UNKNOWN}(?: equal| be)?{_TAIL}",
    r"(?:what|which number) is it",
    rf"(?:the )?(?:solution|root|answer) (?:of|to|for) {_THING} is",
    rf"(?<=> )solution (?:of|to|for) {_THING}",
    # Said the other way round.
    rf"(?:{UNKNOWN}|{_THING}) {any_of('has have needs need is')} to be "
    rf"{any_of('found solved determined computed worked_out')}",
    rf"(?:i|we) (?:need|want|would like|'d like) {_THING} solved",
    rf"(?:i|we) (?:need|want|would like|'d like)(?: to (?:know|have|find))? {_SOUGHT}{_TAIL}",
    rf"(?:i|we) (?:need|want|would like|'d like) to know what {UNKNOWN} (?:is|equals|must be|"
    rf"should be){_TAIL}",
    rf"(?:i wonder|let me know|tell me|i was wondering|do you know|you know|can you tell|know) "
    rf"(?:what|which number) {_SOUGHT}{_BE}{_TAIL}",
    rf"let me know {_SOUGHT}{_TAIL}",
    rf"need {_SOUGHT}",
)

# --- clauses beside them -----------------------------------------------------------------------

_SOURCE = rf"(?:the|my|our|an?|this|one)(?: {_ADJECTIVE})? " + any_of(
    "homework worksheet teacher book textbook exercise exam test quiz lesson course assignment "
    "sheet",
    "problem question task puzzle",
)
_POLITE = (
    any_of("please pls plz kindly now then so and but ok okay well first"),
    any_of(
        "can_you could_you would_you will_you can_u could_u could_i_ask_you_to may_i_ask_you_to",
        "i_want_you_to i_need_you_to i_would_like_you_to i'd_like_you_to i_want_to i_need_to",
        "i_have_to i_must i_am_trying_to i'm_trying_to i_would_like_to i'd_like_to we_need_to",
        "we_have_to we_want_to you_have_to you_need_to your_task_is_to the_task_is_to try_to",
        "go_ahead_and use_algebra_to using_algebra would_you_mind do_you_mind help_me_to help_me",
        "can_you_help_me can_you_help could_you_help_me could_you_please_help_me you_help_me",
        "please_help_me i_need_help_with i_need_help help_me_with help let's let_us",
        "i_was_hoping_you_could i_hope_you_can i_wonder_if_you_could be_so_kind_as_to you_please",
        "you_kindly i_would_be_grateful_if_you_could i'd_be_grateful_if_you_could need_help_with "
        "need_help_to",
        "need_to could_someone can_someone can_anyone can_somebody",
    ),
    r"(?:hello|hi|hey|dear assistant|good (?:morning|afternoon|evening|day))(?: there)?",
    r"(?:many )?thanks(?: (?:a lot|so much|in advance|for (?:the|your) help|for helping|for this))?"
    r"|thank you(?: (?:very much|so much|in advance|for (?:the|your) help))?|thx|cheers|much "
    r"appreciated",
    r"sorry to (?:bother|trouble) you(?: with this)?",
    rf"(?:i'm|i am|i got|we're|we are) stuck(?: (?:on|with) {_SOMETHING})?",
    rf"(?:i|we)(?: have)? been (?:trying|given|looking at|staring at) "
    rf"(?:to (?:do|solve|work out) )?(?:my homework|{_SOMETHING})",
    rf"(?:i|we) need (?:it|this|the answer) (?:today|tomorrow|tonight|for (?:school|my "
    rf"{any_of('homework test exam class')}))",
    r"(?:it is|it's|this is|that is|that's) (?:for )?(?:my |our )?homework",
    rf"(?:for|from) (?:my|our|the|an?) (?:{_ADJECTIVE} )?"
    rf"{any_of('homework test exam quiz assignment worksheet textbook exercise')}",
    rf"(?:i'm|i am|while) {any_of('studying revising practising practicing')}"
    rf"(?: (?:algebra|maths?))?(?: for (?:a|my) {any_of('test exam quiz')})?(?: a chapter)?",
    rf"(?:to )?solve {_A}+",
    r"(?:give|provide|write|show)(?: me)? an?(?= <style-)",
    r"(?:let me|i'd like to|i would like to|i want to|and|with|by|while)(?= <style-)|as you go",
    r"(?<=steps> )(?:i|you|we|one)(?= (?:solve|find|work|get|determine|figure))",
    rf"(?:i|we) (?:have|found|met|saw|got|came across|ran into) {_SOMETHING}(?: (?:today|yesterday|"
    rf"here))?",
    rf"(?:i|we) (?:was|were|am|are|'ve been|have been) "
    rf"(?:given|looking at|working on) {_SOMETHING}",
    rf"(?:and )?came across {_SOMETHING}",
)
_STORY = (
    rf"(?:given|if|when|suppose|assume|assuming|let|consider|take|for|from|in|since|because|knowing"
    rf"|where|using|look at|use)(?: that)?:? {_THING}(?: (?:holds?|is true|is given|is satisfied|"
    rf"is correct))?(?:,? then)?",
    r"(?:given|suppose|assume|let|consider|take)(?: that)?",
    rf"(?:we|i|you) know(?: that)?:? {_THING}(?: (?:holds|is true))?",
    rf"(?:here is|here's|this is|there is|there's|below is|below you will find|you will find) "
    rf"{_SOMETHING}",
    rf"(?:here is|here's|there is|there's) (?:one|an) unknown,? {UNKNOWN},? in {_THING}",
    rf"(?:suppose that |let |if )?(?:there is )?(?:the )?{UNKNOWN} (?:is|be|as) (?:an?|the|some|"
    rf"our) "
    rf"(?:{any_of('unknown real certain')} )?{any_of('number value variable unknown')}"
    rf"(?: (?:for which|such that|with|that satisfies|satisfying|in) {_THING}{_TRUE})?",
    rf"there is (?:a|some|one) (?:number|value) {UNKNOWN}(?: (?:with|for which|such that) "
    rf"{_THING}{_TRUE})?",
    rf"(?:{_LETTER} )?{UNKNOWN} satisfies {_THING}",
    rf"(?:{_LETTER}|unknown|variable)(?: in (?:it|{_THING}))? (?:is|is called) {UNKNOWN}",
    r"(?:the )?(?:unknown|variable|equation|problem|question|exercise|task)",
    rf"(?:{_THE}+|{_A}+|equation)(?: to (?:solve|be solved))? (?:is|reads|says|states|goes)(?: "
    rf"that)?:? "
    rf"{_THE}+",
    r"(?:all|what) (?:i|we) (?:know|have) is",
    rf"(?:it|this) (?:reads|says|is):? {_THE}+",
    rf"{_THE}+ is {_THE}+(?: i have to solve)?",
    rf"(?:{_SOURCE}|{_THE}+|{_A}+) (?:has|have|says|reads|gives|gave|contains|put|states|wants|"
    rf"shows|asks)(?: (?:me|"
    rf"us))?(?: to)?"
    rf"(?: that)? {_SOMETHING}(?: (?:holds|is true|on the board))?",
    rf"(?:someone|somebody|they|he|she|a friend|my teacher) (?:gave|showed|sent|asked) (?:me|us) "
    rf"{_SOMETHING}",
    r"the following (?:must be|is|holds|has to be)(?: true)?",
    rf"{_THE}+ (?:holds|is true|must be true|must hold)",
    rf"{_THE}+",
)


def with_nouns(text: str) -> str:
    """A sentence with signs in place of what it calls its equation, each as long as that was."""
    return _NOUNS.sub(lambda m: (_A if m["some"] else _THE) * len(m.group()), text)


@cache
def asking() -> tuple[re.Pattern[str], ...]:
    """The clauses that ask; made when there is the first request to read."""
    return tuple(map(_clause, _ASKS))


@cache
def beside() -> tuple[re.Pattern[str], ...]:
    """The clauses that may stand beside them."""
    return tuple(map(_clause, (*_POLITE, *_STORY)))


def _clause(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern})(?![\w'<-])")
