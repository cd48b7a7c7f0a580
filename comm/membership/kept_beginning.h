/* Decides with which of the commits that they keep ranks begin. Pure; in C, since the Python package asks it, too. */
#ifndef MUSTER_KEPT_BEGINNING_H
#define MUSTER_KEPT_BEGINNING_H

#include <stddef.h>
#include <stdint.h>

/* A number means one state. A rank that is gone may have completed one commit that none of the others has, and its part is still held; it cannot have come further, as it trains for the next commit
 * with the others. So the first commit after a state was spread, or after ranks have gone back, has this much more than the largest number. */
#define MUSTER_KEPT_BEYOND 2

struct muster_kept_beginning {
    uint64_t step; /* the newest that all find, or else the newest that one finds; 0: there is none */
    uint64_t next; /* the number of the first commit after it */
    size_t root;   /* the first rank that has it */
    int is_common; /* all have it */
};

static inline int muster_kept_has(uint64_t const* steps, size_t most, uint64_t step) {
    for (size_t i = 0; i < most; ++i)
        if (steps[i] == step) return 1;
    return 0;
}

/* `steps`: of each rank, the numbers of the commits that it finds, `most` of them; 0 in place of missing ones. */
static inline struct muster_kept_beginning muster_choose_kept_beginning(uint64_t const* steps, size_t ranks, size_t most) {
    struct muster_kept_beginning chosen = {0, 0, 0, 0};
    uint64_t newest = 0, common = 0;
    for (size_t i = 0; i < ranks * most; ++i)
        if (steps[i] > newest) newest = steps[i];
    for (size_t i = 0; ranks > 0 && i < most; ++i) {
        size_t having = 0;
        while (having < ranks && muster_kept_has(steps + having * most, most, steps[i])) ++having;
        if (having == ranks && steps[i] > common) common = steps[i];
    }
    chosen.is_common = common != 0;
    chosen.step = common != 0 ? common : newest;
    chosen.next = newest + MUSTER_KEPT_BEYOND;
    while (chosen.step != 0 && !muster_kept_has(steps + chosen.root * most, most, chosen.step)) ++chosen.root;
    return chosen;
}

#endif
