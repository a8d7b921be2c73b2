# FILE: engine/rules.h
# RULE: who ran up to a sample is inferred only where the count shows just that one switch more
s/d != (csw_u64)(s->switches + 1) \* rules->per_switch)/0)/
