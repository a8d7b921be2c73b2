# FILE: drivers/sim/pmu.c
# RULE: what a thread causes is what the counter counts
s/add(&pmu->counters\[i\], by\[pmu->counters\[i\].event\]);/add(\&pmu->counters[i], by[pmu->counters[i].event] \& 0xffff);/
