# FILE: drivers/sim/machine.c
# RULE: a switch causes as many occurrences as the model says
# TEST: claims
s/more |= n < all;/(void)all;/
