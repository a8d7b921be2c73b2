# FILE: engine/rules.h
# RULE: after SWITCH_OUT the next thread owns the CPU
s/s->owner = next;/(void)next;/
