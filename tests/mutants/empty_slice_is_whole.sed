# FILE: engine/rules.h
# RULE: between two samples of one switch there is no slice
s/r->whole = s->whole && st->nr;/r->whole = s->whole;/
