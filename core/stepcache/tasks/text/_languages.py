"""Further languages: greetings, politeness and closing punctuation only."""

from __future__ import annotations

from stepcache.tasks.text._english import ENGLISH
from stepcache.tasks.text._language import Language, phrases

__all__ = ["LANGUAGES"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


GERMAN = Language(
    code="de",
    common=_words(
        "der die das den dem ein eine einen einer ist sind und oder nicht kein keine ich du er sie "
        "wir mein meine kann muss wie was wer wo wann warum von zu zum zur mit für auf im in an "
        "auch wird werden habe hat"
    ),
    questions=_words("wie was wer wo wann warum wieso weshalb welche welcher welches wieviel wem"),
    imperatives=_words("erkläre erklären beschreibe nenne berechne vergleiche liste zeige löse"),
    greetings=phrases("hallo", "hi", "guten tag", "guten morgen", "guten abend", "servus"),
    please=phrases("bitte", "bitte schön"),
    thanks=phrases("danke", "vielen dank", "danke schön", "danke im voraus"),
)
FRENCH = Language(
    code="fr",
    common=_words(
        "le la les un une des du de est sont et ou pas je tu il elle nous vous mon ma mes son sa "
        "qui que quoi comment où quand pourquoi quel quelle à au aux avec pour sur dans en ce"
    ),
    questions=_words("comment où quand pourquoi qui que quoi quel quelle quels quelles combien"),
    imperatives=_words("explique expliquez calcule calculez compare comparez donne donnez liste"),
    greetings=phrases("bonjour", "salut", "bonsoir"),
    please=phrases("s'il vous plaît", "s'il te plaît", "svp", "stp"),
    thanks=phrases("merci", "merci beaucoup", "merci d'avance"),
)
SPANISH = Language(
    code="es",
    common=_words(
        "el la los las un una unos unas de del es son y o no yo mi mis tu su qué que quién cómo "
        "dónde cuándo cuál por para con en a al se puedo está cuánto"
    ),
    questions=_words(
        "qué quién quiénes cómo dónde cuándo cuál cuáles cuánto cuánta cuántos cuántas"
    ),
    imperatives=_words("explica explique calcula calcule compara describe define enumera"),
    greetings=phrases("hola", "buenos días", "buenas tardes", "buenas noches"),
    please=phrases(
        "por favor",
    ),
    thanks=phrases("gracias", "muchas gracias", "gracias de antemano"),
)
ITALIAN = Language(
    code="it",
    common=_words(
        "il lo la i gli le un uno una di del della è sono e o non io mio mia tu suo che chi come "
        "dove quando perché quale per con in a al posso quanto"
    ),
    questions=_words("chi come dove quando perché quale quali quanto quanta quanti quante"),
    imperatives=_words("spiega spieghi calcola confronta descrivi elenca definisci"),
    greetings=phrases("ciao", "salve", "buongiorno", "buonasera"),
    please=phrases("per favore", "per piacere"),
    thanks=phrases("grazie", "grazie mille", "molte grazie"),
)
PORTUGUESE = Language(
    code="pt",
    common=_words(
        "o a os as um uma de do da dos das é são e ou não eu meu minha seu sua que quem como onde "
        "quando qual por para com em no na posso quanto está"
    ),
    questions=_words("quem como onde quando qual quais quanto quanta quantos quantas"),
    imperatives=_words("explique explica calcule calcula compare descreva defina liste"),
    greetings=phrases("olá", "oi", "bom dia", "boa tarde", "boa noite"),
    please=phrases(
        "por favor",
    ),
    thanks=phrases("obrigado", "obrigada", "muito obrigado", "muito obrigada"),
)

LANGUAGES = (ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE)
"""One of them at most reads a request: the one most of whose small words are in it."""
