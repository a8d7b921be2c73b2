# FILE: engine/rules.h
# RULE: the switch that caused a sample belongs to the slice before it
s/s->own_to_come = rules->before;/s->own_to_come = 0;/
