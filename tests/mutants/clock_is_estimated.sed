# FILE: engine/booking.c
# RULE: clocks are known, and no estimate
s/(1u << s->nr_counters) - 1 : CSW_EVERY_COUNTER) & ~s->clocks;/(1u << s->nr_counters) - 1 : CSW_EVERY_COUNTER);/
