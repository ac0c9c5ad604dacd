"""Attacks on the whole product, and the figures they end with.

``make trust`` (or ``python -m trust``) runs all parts and exits 1 when anything was served that
should not have been, crashed or hung. Every input follows from the seed, the part and its number.

    fuzz        every parser and translator, by grammar and mutation
    coverage    the same targets guided by coverage, where atheris is installed
    limits      the same parsers at the largest sizes the policy lets in
    faults      each port failing in each way at each effect of recorded flows
    forgery     stored records corrupted, swapped, re-signed and replayed
    tenants     one tenant asking for what another's is
    collisions  prompts made to lie next to stored ones, under both embedders
    attacks     one test for each attack known against caches of this kind
"""
