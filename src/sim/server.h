/* sim/server.h - where a simulated run gets its plan from, and leaves its results. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "sim/plan.h"

/* Of the run; shared with the explorer, if there is one. */
extern struct hd__sim_page *hd__sim_page;

#endif
