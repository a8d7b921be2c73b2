# FILE: engine/table.c
# RULE: what is an estimate is marked as one
s/shares\[i\] += deltas\[i\];/shares[i] += 0 * deltas[i];/
