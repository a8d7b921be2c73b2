# FILE: engine/booking.c
# RULE: idle is no time on a CPU, and has no share of what threads caused
s|st->owner\[i\] == CSW_OWNER_IDLE ? 0 : st->ns\[i\]|st->ns[i]|
