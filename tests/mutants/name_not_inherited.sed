# FILE: engine/tasks.c
# RULE: a thread that never named itself has the name of its parent
s/memcpy(row->comm, parent->comm, sizeof(row->comm));/(void)parent->comm;/
