# FILE: engine/rules.h
# RULE: a late sample, after SWITCH_IN, still ends the slice of the thread that left
s/if (!later \&\& (s->switching || s->switches))/if (!later \&\& s->switching)/
