"""How answers are shown to people: words, colours, and views of one outcome.

Stands at the bottom, beside the values it shows, and is loaded only when somebody looks.
"""
