# FILE: engine/slicer.c
# RULE: clocks are known, and no estimate
s/(1u << s->nr_counters) - 1 : ALL) & ~s->clocks;/(1u << s->nr_counters) - 1 : ALL);/
