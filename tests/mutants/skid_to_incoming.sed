# FILE: engine/rules.h
# RULE: a late sample, after SWITCH_IN, still ends the slice of the thread that left
s/(s->switching || (rules->inside && s->switches))/s->switching/
