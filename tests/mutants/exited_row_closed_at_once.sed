# FILE: engine/tasks.c
# RULE: a thread that has begun to exit keeps its TID and its row until it has left for good
s/^\t\trow->flags |= CSW_ROW_EXITED;$/\t\tclose_row(t, find_slot(t, rec->tid)->row);/
