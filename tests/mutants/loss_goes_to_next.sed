# FILE: engine/rules.h
# RULE: a slice with missing records, or with a stopped trigger, belongs to nobody
s/r->slice = CSW_SLICE_LOST;/{ r->slice = CSW_SLICE_EXACT; r->owner = s->owner; }/
