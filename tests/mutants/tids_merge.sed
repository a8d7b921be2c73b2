# FILE: engine/tasks.c
# RULE: a thread is a TID and a birth: exit frees the TID, a fork opens a new row
s/if (find_slot(t, row->tid)->row == nr)/if (0)/
s/row && row->birth_ns >= rec->time_ns && row->pid == rec->pid/row/
