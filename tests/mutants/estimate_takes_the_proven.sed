# FILE: engine/booking.c
# RULE: what cannot happen in idle is proven beside one thread
s/if (r->slice == CSW_SLICE_IDLED || /if (/
