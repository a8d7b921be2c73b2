# FILE: engine/slicer.c
# RULE: the end of a turn cuts the slice: one slice lies within one turn
/^static int on_reading/,/^{/s/^{/{\n\tif (rec->flags \& CSW_RECORD_TURN)\n\t\treturn 0;/
