# FILE: engine/booking.c
# RULE: an estimate of the owner needs owners: who is unknown has none
s/if (is_owner(st, CSW_OWNER_UNKNOWN) || is_owner(st, CSW_OWNER_LOST))/if (s->nr_cpus == 0)/
