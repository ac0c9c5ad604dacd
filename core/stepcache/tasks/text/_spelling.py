"""Spellings of one English word: British and American, with and without a hyphen or capital.

Closed lists. A pair is here only if both are the same word in every sentence: not "check" and
"cheque", not "program" and "programme", not "turkey" and "Turkey".
"""

from __future__ import annotations

__all__ = ["ONE_CASE", "ONE_SPELLING", "VARIETIES"]

_OUR = (
    "armour behaviour colour endeavour favour flavour harbour honour humour labour neighbour "
    "odour parlour rumour savour splendour vapour vigour favourite neighbourhood"
)
_ISE = (
    "apologise authorise categorise characterise customise emphasise finalise initialise maximise "
    "memorise minimise modernise optimise organise personalise prioritise realise recognise "
    "standardise subsidise summarise symbolise synchronise utilise visualise"
)
_OTHERS = (
    "centre/center fibre/fiber litre/liter theatre/theater kilometre/kilometer "
    "centimetre/centimeter millimetre/millimeter cancelled/canceled cancelling/canceling "
    "travelled/traveled travelling/traveling traveller/traveler labelled/labeled "
    "modelling/modeling jewellery/jewelry aluminium/aluminum grey/gray "
    "enrol/enroll enrolment/enrollment fulfil/fulfill instalment/installment "
    "instalments/installments catalogue/catalog dialogue/dialog defence/defense "
    "offence/offense licence/license organisation/organization analyse/analyze "
    "paediatric/pediatric anaesthetic/anesthetic e-mail/email e-mails/emails wi-fi/wifi "
    "pyjamas/pajamas mould/mold plough/plow sceptical/skeptical"
)


def _spellings() -> dict[str, str]:
    found: dict[str, str] = {}
    for word in _OUR.split():
        for ending in ("", "s"):
            found[word + ending] = word.replace("our", "or", 1) + ending
    for word in _ISE.split():
        for ending in ("", "d", "s"):
            found[word + ending] = word[:-2] + "ze" + ending
        found[word[:-1] + "ing"] = word[:-2] + "zing"
    for pair in _OTHERS.split():
        british, _, american = pair.partition("/")
        found[british] = american
    return found


ONE_SPELLING = _spellings()
"""A spelling, casefolded, and the one it is equal to."""

_NAMES = (
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays "
    "thursdays fridays saturdays sundays january february july september october november "
    "december christmas britain british england english scotland scottish ireland irish london "
    "edinburgh glasgow cardiff belfast manchester birmingham leeds liverpool europe european "
    "france french germany german spain spanish italy italian portugal portuguese netherlands "
    "belgium belgian austria austrian switzerland denmark sweden swedish norway norwegian finland "
    "finnish greece greek poland russia russian ukraine america american canada canadian mexico "
    "mexican brazil brazilian argentina india indian pakistan korea korean thailand vietnam "
    "australia australian africa african egypt nigeria kenya madrid barcelona rome berlin munich "
    "vienna lisbon dublin amsterdam brussels paris washington chicago google gmail facebook "
    "instagram netflix spotify microsoft bluetooth"
)
_INITIALS = (
    "uk usa eu nhs pdf usb gps vpn tv dvd faq html url http sql wifi iphone ipad youtube paypal "
    "whatsapp linkedin tiktok"
)


def _cases() -> dict[str, str]:
    """Every way to write a name that tells nothing, and the name in small letters."""
    found: dict[str, str] = {}
    for name in _NAMES.split():
        found[name] = found[name.capitalize()] = name
    for name in _INITIALS.split():
        found[name] = found[name.upper()] = found[name.capitalize()] = name
    for written in ("iPhone", "iPad", "YouTube", "PayPal", "WhatsApp", "LinkedIn", "TikTok"):
        found[written] = written.casefold()
    found["WiFi"] = "wifi"
    return found


ONE_CASE = _cases()
"""Names and initials that are no other word in small letters, so that their case tells nothing."""

VARIETIES = frozenset(
    (
        *("britain", "british", "american", "america", "english", "us", "uk", "usa", "oxford"),
        *("australian", "canadian"),
    )
)
"""Words that may make spelling the very thing that is asked about."""
