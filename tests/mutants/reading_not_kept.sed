# FILE: engine/slicer.c
# RULE: a reading is subtracted from the one before, once
s/^\tcpu->readings\[i\] = now;/\tcpu->readings[i] = now - deltas[i] \/ 2;/
