# FILE: engine/booking.c
# RULE: what threads of several processes had together is in no process's row
# TEST: claims
s/if (st->owner\[i\] < CSW_ROWS_FIXED ||$/if (st->owner[i] < CSW_ROWS_FIXED \&\&/
