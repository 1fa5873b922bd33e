/* story.h - a run, told line by line: which process ran, what it did, why it waited. */
#ifndef STORY_H
#define STORY_H

#include "subject.h"

/* Tells the run whose events are in the page. `pid`: an OS process with the memory map of the one that ran; 0: there is
 * none. */
void tell_story(const struct hd__sim_page *page, pid_t pid);

/* What a verdict means, with the numbers of the run. */
void print_verdict(const struct hd__sim_page *page);

#endif
