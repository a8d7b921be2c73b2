# FILE: engine/rules.h
# RULE: a sample between OUT and IN ends the slice of the thread that left
/^static inline void csw_rule_inside/,/^}/s/^\t\treturn;$/\t\t{ csw_rule_charge(s, r, s->owner, t, CSW_RUN_CUT); return; }/
