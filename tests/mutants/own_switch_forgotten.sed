# FILE: engine/rules.h
# RULE: the switch that caused a sample belongs to the slice before it
s/s->own_to_come = rules->before ? CSW_OWN_TO_COME : CSW_OWN_SEEN;/s->own_to_come = CSW_OWN_SEEN;/
