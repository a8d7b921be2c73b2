# FILE: engine/booking.c
# RULE: what was off in a slice says nothing of it, not even 0
s/proven &= s->on;/proven |= 0;/
