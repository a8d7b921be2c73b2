# FILE: engine/slicer.c
# RULE: a thread that an exec moved to its leader's TID is known by it when it is switched out, before its COMM record
/^static int on_switch_out/,/^}/s/csw_tasks_follow_exec(&s->tasks, rec->pid, rec->tid, cpu->state.owner) < 0/0/
