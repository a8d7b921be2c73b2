# FILE: engine/slicer.c
# RULE: a reading is subtracted from the one before, once
s/^\t\*reading = now;/\t*reading = now - *delta \/ 2;/
