# FILE: engine/booking.c
# RULE: in a shared slice nobody gets more of a clock than its own time
s/(slice_ns > owned_ns ? slice_ns : owned_ns)/owned_ns/
