# FILE: drivers/sim/pmu.c
# RULE: a reading of a 48 bit counter that wrapped is extended
s/unsigned shift = 64 - counter->bits;/unsigned shift = 0;/
