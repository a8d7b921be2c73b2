# FILE: engine/merge.c
# RULE: every record of every ring is passed on, here but for one sample in a thousand
s/^\t\tret = put(ctx, head);$/\t\tstatic unsigned samples;\n\t\tret = head->type == CSW_RECORD_SAMPLE \&\& ++samples % 1000 == 0 ? 0 : put(ctx, head);/
