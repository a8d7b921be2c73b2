# FILE: engine/rules.h
# RULE: a thread that leaves as -1 is the owner, exiting
s/prev = s->owner;/prev = CSW_OWNER_UNKNOWN;/
