# FILE: engine/slicer.c
# RULE: a reading is subtracted from the one before, once
s/cpu->readings\[c\] = now\[c\];/if (c % 2) cpu->readings[c] = now[c];/
