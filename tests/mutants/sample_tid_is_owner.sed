# FILE: engine/slicer.c
# RULE: the owner comes from the switch records, the TID of a sample is a hint
s/^\tcpu->done.samples++;$/\tcpu->state.owner = (uint32_t)csw_tasks_find(\&s->tasks, rec->pid, rec->tid, rec->time_ns);\n&/
