# FILE: engine/slicer.c
# RULE: a thread that an exec moved to its leader's TID is known by it in a sample, before its COMM record
/^static int rule_sample/,/^}/s/follow_exec(s, cpu, rec) < 0/0/
