"""The demonstration: a real local model, a chain over it, and the same chain with StepCache.

Run it with ``stepcache demo``; it needs the extra ``stepcache[demo]``.
"""
