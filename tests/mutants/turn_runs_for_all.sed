# FILE: engine/table.c
# RULE: only the counters of the set whose turn it is have run
/^void csw_aggregation_count_turn/,/^}/s/if (!(on >> i & 1))/if (0)/
