# FILE: engine/slicer.c
# RULE: the last one of a slice is the thread that leaves, not the one that comes
s/return s->rules.inside || state->switching ? state->left : state->owner;/return state->owner;/
