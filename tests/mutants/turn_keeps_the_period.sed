# FILE: engine/slicer.c
# RULE: a turn begins with a whole period of the trigger
/^static void end_turn/,/^}/s/cpu->done.open = sum(cpu->done.open, cpu->state.open);/return;/
