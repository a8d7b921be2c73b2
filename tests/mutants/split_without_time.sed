# FILE: engine/booking.c
# RULE: owners share a slice by their time in it
s|share = (uint64_t)((unsigned __int128)share \* ns / g->ns);|share /= 2;|
