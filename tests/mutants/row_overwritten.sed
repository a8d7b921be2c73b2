# FILE: engine/table.c
# RULE: a row adds up
s/cell\[i\].sum += deltas\[i\];/cell[i].sum = deltas[i];/
