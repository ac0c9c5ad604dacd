"""Words that tell what kind of difference they make, in the languages of the project's data.

They name a difference; they never excuse one. So a word with two readings does no harm here, and a
missing word makes a plain ``word`` difference.
"""

from __future__ import annotations

__all__ = ["KIND_OF_WORD", "OPPOSITES", "OPPOSITE_PREFIXES", "SIGNS"]

_NEGATION = """
no not never none nothing nobody nowhere without nor cannot can't don't doesn't didn't isn't
aren't wasn't weren't won't wouldn't shouldn't couldn't haven't hasn't hadn't mustn't except
excluding unless nicht kein keine keinen keiner nie niemals ohne außer ne pas jamais sans aucun
aucune sauf sin nunca ningún ninguna nada salvo senza mai nessun nessuna tranne não sem nenhum
nenhuma exceto niet geen не без нет никогда 不 没 無 无 非 否 别 勿 nahi
"""
_COMPARISON = """
more less fewer greater smaller bigger larger than higher lower above below under over least most
max min maximum minimum exceeds exceeding better worse older younger faster slower equal equals
mehr weniger größer kleiner höher niedriger mindestens höchstens als plus moins supérieur
inférieur más menos mayor menor più meno maggiore minore mais maior больше меньше 大 小 多 少 超 至
"""
_QUANTIFIER = """
all every each any some many few several both either neither only half everyone everything anyone
someone alle jede jeder jedes einige beide nur viele wenige tous toutes chaque quelques seulement
todos todas cada algunos ambos solo sólo tutti tutte ogni alcuni entrambi soltanto ambas apenas
все каждый некоторые только 全 每 各 都 只
"""
_DATE = """
monday tuesday wednesday thursday friday saturday sunday january february march april june july
august september october november december montag dienstag mittwoch donnerstag freitag samstag
sonntag januar februar märz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi
samedi dimanche janvier février mars avril juin juillet août septembre octobre novembre décembre
lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio
agosto septiembre octubre noviembre diciembre weekday weekdays weekend weekends mondays tuesdays
wednesdays thursdays fridays saturdays sundays 年 月 日
"""
_TIME = """
today tomorrow yesterday tonight now currently before after until since during last next previous
current past future recently ago soon later earlier morning afternoon evening night noon midnight
am pm o'clock daily weekly monthly yearly annual was were will becoming became used former
formerly heute morgen gestern jetzt vor nach bis seit letzte letzten nächste nächsten früher
aujourd'hui demain hier maintenant avant après depuis dernier dernière prochain prochaine hoy
mañana ayer ahora antes después desde último última próximo próxima oggi domani ieri adesso prima
dopo ultimo hoje amanhã ontem agora depois сегодня завтра вчера сейчас 今 昨 明 前 后 後
"""
_CURRENCY = """
dollar dollars euro euros pound pounds yen rupee rupees franc francs yuan peso pesos real reais
cent cents pence usd eur gbp jpy inr chf cny mxn brl cad aud 元 円 圆
"""
_UNIT = """
mm cm m km inch inches foot feet yard yards mile miles meter meters metre metres kilometer
kilometers kilometre kilometres centimeter centimeters centimetre centimetres g kg mg gram grams
kilogram kilograms ounce ounces lb lbs tonne tonnes ton tons l ml litre litres liter liters gallon
gallons pint pints second seconds minute minutes hour hours day days week weeks month months year
years decade century s ms h kb mb gb tb kib mib gib byte bytes bit bits hz khz mhz ghz w kw kwh v
celsius fahrenheit kelvin degree degrees percent percentage mph kph acre acres hectare hectares
sekunde sekunden minuten stunde stunden tag tage woche wochen monat monate jahr jahre heure heures
jour jours semaine semaines mois an ans hora horas día días semana semanas mes meses año años 米 克
"""
_LANGUAGE = """
english french german spanish italian portuguese dutch russian chinese mandarin japanese korean
arabic hindi turkish polish swedish danish norwegian finnish greek czech hebrew latin ukrainian
vietnamese thai indonesian englisch deutsch französisch spanisch italienisch anglais français
allemand espagnol italien inglés francés alemán español italiano inglese francese tedesco spagnolo
inglês francês alemão espanhol português 语 語
"""
_FORMAT = """
json yaml xml csv tsv html markdown latex toml table tables list lists bullet bullets bulleted
numbered plain text prose essay poem haiku email letter report outline heading headings pdf word
excel spreadsheet diagram chart python javascript typescript java rust sql regex bash object array
tabelle liste tableau tabla lista tabella 表
"""
_LENGTH = """
short shorter brief briefly concise concisely long longer detailed detail details length sentence
sentences words paragraph paragraphs character characters line lines page pages summary full
complete simple simply kurz lang ausführlich court bref long détaillé breve corto largo detallado
lungo dettagliato curto 短 长 長
"""
_PERSON = """
i me my mine myself you your yours he him his she her hers we us our ours they them their theirs
who whom admin administrator user users customer customers member members manager employee child
children kid kids adult adults parent parents student students teacher beginner beginners expert
experts patient doctor guest owner tenant landlord seller buyer sender recipient husband wife
mother father brother sister son daughter ich du er sie wir ihr mein dein je tu il elle nous vous
mon ton yo tú él ella nosotros mi io lui lei noi mio tuo eu ele ela nós meu teu 我 你 他 她
"""
_NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
thousand million billion trillion dozen once twice thrice double triple first second third fourth
fifth sixth seventh eighth ninth tenth half quarter null eins zwei drei vier fünf sechs sieben
acht neun zehn elf zwölf zwanzig hundert tausend un deux trois quatre cinq sept huit neuf dix onze
douze vingt cent mille uno dos tres cuatro cinco seis siete ocho nueve diez once doce veinte cien
mil due tre quattro sei sette otto nove dieci dodici venti cento dois três quatro oito dez doze
vinte один два три четыре пять шесть семь восемь девять десять 一 二 三 四 五 六 七 八 九 十 百
千 万 萬 两 兩 半 倍
"""

KIND_OF_WORD: dict[str, str] = {}
"""A casefolded word and the kind it makes; where lists overlap the first one counts."""
for _kind, _list in (
    ("negation", _NEGATION),
    ("comparison", _COMPARISON),
    ("quantifier", _QUANTIFIER),
    ("number", _NUMBERS),
    ("date", _DATE),
    ("time", _TIME),
    ("currency", _CURRENCY),
    ("unit", _UNIT),
    ("language", _LANGUAGE),
    ("format", _FORMAT),
    ("length", _LENGTH),
    ("person", _PERSON),
):
    for _word in _list.split():
        KIND_OF_WORD.setdefault(_word, _kind)

SIGNS: dict[str, str] = {
    **dict.fromkeys("<>≤≥≠=≈≦≧", "comparison"),
    **dict.fromkeys("$€£¥₹₽₩￥", "currency"),
    **dict.fromkeys("%‰°", "unit"),
    **dict.fromkeys("¬", "negation"),
}

_OPPOSITES = """
on/off enable/disable enabled/disabled activate/deactivate allow/deny allow/block allow/forbid
allowed/banned allowed/forbidden include/exclude including/excluding open/close open/closed
start/stop begin/end add/remove create/delete insert/delete install/uninstall increase/decrease
increase/reduce raise/lower rise/fall accept/reject accept/decline approve/reject true/false
yes/no up/down in/out left/right hot/cold high/low buy/sell lend/borrow send/receive import/export
upload/download encrypt/decrypt encode/decode compress/decompress lock/unlock login/logout
show/hide expand/collapse connect/disconnect subscribe/unsubscribe mute/unmute follow/unfollow
public/private internal/external inside/outside input/output push/pull win/lose good/bad
same/different before/after first/last ascending/descending vertical/horizontal male/female
man/woman positive/negative advantage/disadvantage advantages/disadvantages pros/cons
benefits/risks eat/avoid do/avoid safe/dangerous like/dislike love/hate pass/fail present/absent
always/never can/cannot single/married empty/full an/aus ein/aus aktivieren/deaktivieren
öffnen/schließen erlaubt/verboten activer/désactiver ouvrir/fermer activar/desactivar abrir/cerrar
attivare/disattivare aprire/chiudere ativar/desativar 开/关 開/關 是/否 加/减 增/减 上/下 买/卖
"""
OPPOSITES = frozenset(frozenset(pair.split("/")) for pair in _OPPOSITES.split())
OPPOSITE_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "de", "mis", "anti", "non-")
