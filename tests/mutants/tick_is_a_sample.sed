# FILE: engine/rules.h
# RULE: a reading in mid-slice stands for no occurrence of the trigger
/^static inline void csw_rule_tick/,/^}/s/csw_rule_close(rules, s, r, t, d, 0)/csw_rule_close(rules, s, r, t, d, rules->sav)/
