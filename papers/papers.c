#include "papers/papers.h"

#include <stddef.h>

const cs_paper *const cs_papers[] = {&cs_paper_cdp,  &cs_paper_timeprest, &cs_paper_madpipe,
                                     &cs_paper_osdp, &cs_paper_paradl,    NULL};
