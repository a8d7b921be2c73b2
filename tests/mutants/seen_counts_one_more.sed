# FILE: engine/rules.h
# RULE: a switch that caused the sample and lies behind it is not counted twice
s/s->switches + (own_behind ? 0 : 1)/s->switches + 1/
