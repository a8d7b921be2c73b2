# FILE: engine/rules.h
# RULE: a trigger count above what was seen proves an unseen switch
s/d <= seen \* rules->per_switch)/1)/
