# FILE: engine/rules.h
# RULE: inside a switch, too, a trigger's count above the switches seen proves an unseen one
s/later = d > (csw_u64)s->switches \* rules->per_switch;/later = 0;/
