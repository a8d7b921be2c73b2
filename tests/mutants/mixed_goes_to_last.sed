# FILE: engine/rules.h
# RULE: a slice with several owners is mixed, not the last one's
s/r->slice = CSW_SLICE_MIXED;/{ r->slice = CSW_SLICE_EXACT; r->owner = s->owner; }/
