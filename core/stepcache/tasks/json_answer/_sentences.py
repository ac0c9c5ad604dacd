"""Plain sentences that ask for one JSON object about a topic, for ``_plain``.

Each pattern is of a whole sentence. No sentence here may say what the values are like (a language,
a length, a unit, an audience, a time), name another object than the one that describes the topic,
or put the keys to another use.
"""

from __future__ import annotations

import re
from functools import cache

from stepcache._phrasing import any_of, compiled

__all__ = ["HERE", "asking", "keys_here", "openings", "plain"]

TOPIC = r"(?P<topic>\w[\w\s\x27\u2019&-]{0,98}?)"
_ITEM = (
    r"(?:\"[^\"\n]{1,60}\"|`[^`\n]{1,60}`|\x27[^\x27\n]{1,60}\x27"
    r"|(?!(?:please|pls|plz|thanks|thank|or|also|etc)\b)[a-z_]\w{0,60})"
)
_MORE = rf"(?:\s?,\s?{_ITEM}){{0,40}}(?:,? (?:and|&) (?:the )?{_ITEM})?"
LIST = rf"(?P<keys>{_ITEM}{_MORE})"
SEVERAL = rf"(?P<keys>{_ITEM}(?:\s?,\s?{_ITEM}{_MORE}| (?:and|&) {_ITEM}))"
QUOTED = r"(?P<keys>\"[^\"\n]{1,60}\"(?:,? (?:and )?\"[^\"\n]{1,60}\"){0,40})"

# --- JSON --------------------------------------------------------------------------------------

_KIND = any_of(
    "object dictionary dict format notation form data output response answer structure document",
    "record entry description representation payload blob profile",
)
_SINGLE = any_of("an? the one single valid only just well-formed raw plain proper strict pure")
_JSON = (
    rf"(?:(?:{_SINGLE} ){{0,4}}json(?:[ -]{_KIND}){{0,2}}"
    rf"|(?:an?|one|a single) (?:object|entry|record) in json(?: (?:format|notation))?)"
)
_OBJECT = r"(?:an?|one|a single) (?:object|dictionary)"
_AS = (
    rf"(?:{any_of('described written represented expressed formatted presented')} )?"
    rf"(?:(?:as|in|into|in the form of|by way of) {_JSON}|using json)"
)

# --- keys --------------------------------------------------------------------------------------

_NOUN = any_of(
    "keys? fields? property properties attributes? members key_names? field_names? key_set"
)
_NAMED = (
    rf"(?:(?:the|these|its|your|exactly|only|just|precisely) ){{0,3}}"
    rf"(?:(?:following|required|exact|given) )?{_NOUN}"
    rf"(?: {any_of('are is named called to_use i_need i_want wanted required needed')})?"
    r"\s?[:=(\[]{0,2}\s?"
)
_HAVING = any_of(
    "with w/ using use having containing comprising featuring carrying holding that_has has",
    "which_has that_contains which_contains that_uses and_uses and_has that_must_have",
    "that_should_have keyed_by from making_use_of and_use and_contain and_contains include",
    "including",
)
_WHOSE = (
    rf"(?:(?:and )?whose|where (?:the|its)|and (?:the|its)|the|its) {_NOUN} "
    rf"{any_of('are is must_be should_be being will_be would_be')}\s?:?\s?"
)
_AS_KEYS = (
    rf" (?:as|for) (?:(?:the|its|your) )?{_NOUN}(?: (?:of|in) (?:the|this) (?:json )?object)?"
)
_CLOSED = r"(?:\s?[)\]]{1,2})?"
_KEYS = (
    rf"(?:^|,? )(?:{_HAVING} {_NAMED}|{_WHOSE}){LIST}{_CLOSED}",
    rf",? and (?:make sure|ensure) (?:that )?(?:it (?:has|contains) {_NAMED}|{_WHOSE}){LIST}",
    rf"(?:^|,? )(?:with|using|having|use) {LIST}{_AS_KEYS}",
    rf",? (?:with|containing|holding|having|that has|keyed by) {QUOTED}",
    rf" \((?:{_NOUN}\s?[:=]?\s?)?{SEVERAL}\)",
    rf",? {_NOUN}\s?[:=]?\s?{LIST}{_CLOSED}",
    rf":\s?{SEVERAL}",
    rf",? if the {_NOUN} (?:were|are) {LIST}",
)
"""How the keys are named in the sentence that asks."""

# --- verbs -------------------------------------------------------------------------------------

_ME = r"(?: (?-i:me|us))?"
_STORE = r"(?:(?:small|new|little|own) )?" + any_of(
    "catalog(?:ue)? database data_?set collection app application web_?site project directory",
    "knowledge_base records archive inventory library program tool api service",
)
_INTRO = (
    r"(?:(?:hello|hi|hey|good (?:morning|afternoon|evening|day))(?: there)?[!,]? )?"
    r"(?:quick (?:one|question|request)[:,] |sorry to bother you,? (?:but )?)?"
    rf"(?:for (?:my|our) {_STORE},? )?"
    r"(?:(?:(?:here is|here's) (?:a|my) )?(?:task|instruction|request|prompt)\s?:\s?)?"
)
_POLITE = (
    r"(?:(?:please|pls|kindly|now|and) )?"
    r"(?:(?:can|could|would|will) (?:you|u) |i (?:want|need) you to |i(?:'d| would) like you to "
    r"|your (?:task|job) is to |you (?:should|must|will|are to) |i hope you can )?"
    r"(?:(?:please|kindly|help me(?! with\b)) )?"
)
_AFTER = r"(?:,? (?-i:please|pls|plz|thanks|thank you|for me)){0,2}"
_DESCRIBE = any_of(
    "describe represent characteri[sz]e portray depict express capture encode tell_me_about",
    "tell_us_about consider think_of",
)
_DESCRIPTION = (
    rf"(?:(?:give{_ME}|provide|write|deliver|produce) (?:a|the) (?:description|representation) of"
    rf"|{_DESCRIBE})"
)
_SHOW = (
    r"(?:give (?-i:me|us)|show (?-i:me|us)|return|provide|output|write(?: (?:up|out|down))?|put|"
    r"turn"
    r"|let me have|i need|i want|i(?:'d| would) like|can i (?:get|have)|could i have|get me)"
)
_GIVE = (
    rf"(?:{any_of('give return provide produce output generate write create build make')}{_ME}"
    rf"|"
    rf"{any_of('construct compose prepare draft supply deliver emit print show send get')}{_ME}"
    rf"|(?:respond|reply|answer|come up|help me) with|fill (?:in|out)|complete"
    rf"|i (?:need|want|require)|i(?:'d| would) (?:like|love|appreciate)|i(?:'m| am) looking for"
    r"|(?:can|could|may) i (?:get|have|ask for)|let me have|need|what i (?:need|want) is)"
)
_ABOUT = any_of(
    "about for on of describing regarding concerning representing to_describe that_describes",
    "which_describes that_represents that_is_about telling_me_about that_tells_me_about",
    "on_the_subject_of on_the_topic_of whose_subject_is whose_topic_is out_of",
)
_FACTS = any_of("information info details facts some_information some_info the_following")
_TOPIC_NOUN = any_of("topic subject entity thing item concept")
_PROGRAM = any_of(
    "program code script app application tool service client parser pipeline system frontend",
    "backend api website server database",
)

# --- sentences ---------------------------------------------------------------------------------

_ASKED = (
    rf"{_GIVE} {_FACTS} (?:about|on|for) {TOPIC} {_AS}{{keys}}",
    rf"{_GIVE} (?:some )?(?:information|info) (?:about|on|for) {TOPIC}",
    rf"{_GIVE} (?:an?|the) entry for {TOPIC}{{keys}}",
    rf"{_DESCRIPTION} {TOPIC}{_AFTER},? {_AS}{{keys}}",
    rf"{_DESCRIPTION} {TOPIC}{_AFTER}{{keys}},? {_AS}",
    rf"{_DESCRIPTION} {TOPIC}{_AFTER},? as {_OBJECT}{{keys}}",
    rf"{_DESCRIPTION} {TOPIC}{_AFTER}{{keys}}",
    rf"{_DESCRIPTION} {TOPIC}{_AFTER},? (?:and|but) "
    rf"(?:answer|return|reply|respond|output|format (?:it|(?:the|your) answer))"
    rf"(?: (?:with|in|as))? {_JSON}{{keys}}",
    rf"(?:{_AS}{{keys}}|{_AS}),? {_DESCRIPTION} {TOPIC}",
    rf"(?:describe|represent),? {_AS}{{keys}},? {TOPIC}",
    rf"{_GIVE} {_JSON} {_ABOUT} {TOPIC}{_AFTER}{{keys}}",
    rf"{_GIVE} {_JSON}{{keys}},? {_ABOUT} {TOPIC}",
    rf"{_GIVE} {_JSON}{{keys}},? and (?:that|which) describes {TOPIC}",
    rf"(?:for|about) {TOPIC},? {_GIVE} {_JSON}{{keys}}",
    rf"{_SHOW} {TOPIC}{_AFTER},? {_AS}{{keys}}",
    rf"{_SHOW} {TOPIC}{_AFTER},? as {_OBJECT}{{keys}}",
    rf"(?:what|how) would {TOPIC} look like,? {_AS}{{keys}}",
    rf"how would you describe {TOPIC},? {_AS}{{keys}}",
    rf"i (?:want|would like|need) to (?:know|learn) about {TOPIC}",
    rf"i (?:want|need) to (?:describe|store|save|record) {TOPIC}(?: {_AS}{{keys}})?",
    rf"help me with {_JSON} {_ABOUT} {TOPIC}{{keys}}",
    rf"(?:take|let's do|let us do|let's take) {TOPIC}(?:,? next)?",
    rf"it (?:should|must) (?:describe|represent|be about) {TOPIC}{{keys}}",
    rf"it(?:'s| is) about {TOPIC}{{keys}}",
    rf"(?:the )?(?:{_TOPIC_NOUN}|thing to describe)(?: to describe| described)? is {TOPIC}"
    rf"(?:(?:,| and)?{{keys}})?",
    rf"i(?:'m| am) (?:building|making|compiling|filling|creating) (?:an?|my|our) {_STORE} and "
    rf"{TOPIC} is (?:the )?next(?: (?:entry|item|one))?",
    # With the keys first.
    rf"{{keys}},? {_DESCRIPTION} {TOPIC},? {_AS}",
    rf"{{keys}},? {_GIVE} {_JSON} {_ABOUT} {TOPIC}",
    # Without a topic.
    rf"{_GIVE} {_JSON}{{keys}}",
    rf"(?:{_GIVE}|put|write|send) (?:it|this|that)(?: (?:up|out|down|back|to me|for me)){{0,2}} "
    rf"{_AS}{{keys}}",
    rf"(?:i(?:'d| would) (?:like|love|prefer)|i (?:want|need)) (?:it|this|that) {_AS}{{keys}}",
    rf"(?:describe|represent) (?:it|this|that) {_AS}{{keys}}",
    rf"(?:write|give me|return|produce|create) {_JSON}{{keys}},? to describe (?:it|this|that)",
    rf"(?:answer|respond|reply|output|return)(?: (?:with|in|as))? {_JSON}{{keys}}",
    rf"(?:(?:the|your) )?(?:answer|output|response|format|result)(?: format)?"
    rf"(?:\s?[:=]| (?:is|should be|must be|has to be|will be))\s?{_JSON}{{keys}}",
    rf"{_OBJECT}{{keys}}",
    r"emit one object{keys}",
)
"""What asks for the object; ``{keys}`` is where the keys may be named."""
_TOPIC_FIRST = (
    rf"{TOPIC},? {_AS},?{{keys}}",
    rf"{TOPIC}\s?(?:->|=>|\u2192|:)\s?{_JSON}{{keys}}",
    rf"{TOPIC}: (?:give me|return|write|i need) {_JSON}{{keys}}",
    rf"{_JSON}(?:,? (?:please|pls))?(?::|,)? (?:about |for |on |of )?:?\s?{TOPIC}{{keys}}",
    rf"{_JSON}{{keys}},? {_ABOUT} {TOPIC}",
)
_KEYS_ONLY = (
    rf"(?:(?:please )?use|here are|let|and|i need|i want|i have|make sure (?:that )?it has)? "
    rf"?{_NAMED}"
    rf"(?:be )?{LIST}{_CLOSED}",
    rf"(?:it|the (?:object|json|answer|profile|record)|its|(?:and )?that) "
    rf"(?:(?:should|must|has to|needs to) )?"
    rf"{any_of('have has contain contains use uses need needs include includes carry get gets')} "
    rf"{_NAMED}{LIST}",
    rf"(?:(?:please )?make sure (?:that )?)?(?:the|its|required) {_NOUN}(?: (?:i need|to use|"
    rf"wanted))? "
    rf"{any_of('are should_be must_be would_be is will_be')}\s?:?\s?{LIST}",
    rf"(?:(?:please )?use|with|could it have|it should have) {LIST}{_AS_KEYS}",
    rf"{SEVERAL} (?:are|as) (?:the|its) {_NOUN}",
    rf"(?:(?:required|wanted) )?{_NOUN}(?: (?:required|needed|wanted|to use|i need|are))?\s?[:=]\s?"
    rf"[\[(]?{LIST}{_CLOSED}",
)
_ASIDES = (
    r"(?:hello|hi|hey|good (?:morning|afternoon|evening|day))(?: there)?",
    r"(?:many )?thanks(?: (?:a lot|so much|in advance))?|thank you(?: (?:very much|so much|in "
    r"advance))?|thx|cheers|please",
    r"sorry to (?:bother|trouble) you|that(?:'s| is) all(?: i need)?",
    rf"(?:my|our|the) {_PROGRAM} (?:reads|parses|expects|needs|wants|takes|accepts|requires) "
    rf"{_JSON}",
    rf"(?:my|our|the) {_PROGRAM} (?:stores|keeps|saves) (?:(?:its|the) )?"
    rf"(?:data|records|entries|items) as json",
    rf"i(?:'m| am) (?:building|making|compiling|filling|creating|working on) (?:an?|my|our) "
    rf"{_STORE}",
    r"you are (?:an? )?json (?:generator|writer|formatter|api)",
    rf"{_JSON}\s?:?",
)
_LABEL = r"(?:#{1,4} )?(?:input|lookup|about|" + _TOPIC_NOUN + r")\s?[:=]\s?" + TOPIC
"""A line that names the topic."""
HERE = "\x01"
"""What stands for the clause that names the keys, as often as it is long."""


@cache
def keys_here() -> re.Pattern[str]:
    """Where the keys are named in a sentence that says more; each way has a group of its own."""
    ways = (way.replace("(?P<keys>", f"(?P<keys{n}>") for n, way in enumerate(_KEYS))
    return compiled("|".join(ways))


@cache
def openings() -> re.Pattern[str]:
    """What may stand before a sentence that asks."""
    return compiled(_INTRO + _POLITE)


@cache
def asking() -> tuple[re.Pattern[str], ...]:
    """What asks for the object, behind an opening."""
    named = f"{HERE}*"
    return tuple(_sentence(rf"(?:{p.replace('{keys}', named)}){_AFTER}") for p in _ASKED)


@cache
def plain() -> tuple[re.Pattern[str], ...]:
    """All other sentences."""
    keys = (rf"(?:{pattern}){_AFTER}" for pattern in _KEYS_ONLY)
    first = (pattern.replace("{keys}", f"{HERE}*") for pattern in _TOPIC_FIRST)
    return tuple(map(_sentence, (_LABEL, *keys, *_ASIDES, *first)))


def _sentence(pattern: str) -> re.Pattern[str]:
    return compiled(rf"\s{{0,3}}(?:{pattern})\s{{0,3}}")
