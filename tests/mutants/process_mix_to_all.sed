# FILE: engine/booking.c
# RULE: what threads of one process had together stays that process's
# TEST: claims
s/return csw_tasks_mixed(&s->tasks, first);/return CSW_ROW_MIXED;/
