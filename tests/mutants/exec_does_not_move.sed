# FILE: engine/tasks.c
# RULE: an exec from another thread than the leader takes its row along
s/return !leader || (leader->flags & CSW_ROW_EXITED);/return false;/
