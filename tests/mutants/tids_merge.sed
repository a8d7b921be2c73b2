# FILE: engine/tasks.c
# RULE: a thread is a TID and a birth: exit closes its row, a fork opens a new one
s/if (row >= CSW_ROWS_FIXED && !preempted/if (0 \&\& row >= CSW_ROWS_FIXED \&\& !preempted/
s/row && row->birth_ns >= rec->time_ns && row->pid == rec->pid/row/
