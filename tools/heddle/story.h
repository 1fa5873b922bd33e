/* story.h - a run, told line by line: who ran, what it did, why it waited. */
#ifndef STORY_H
#define STORY_H

#include "subject.h"

/* Tells the run that the page has the events of. `pid`: a process with the same memory map as the one that ran; 0: it has gone. */
void tell_story(const struct hd__sim_page *page, pid_t pid);

/* What a verdict means, with the numbers of the run. */
void print_verdict(const struct hd__sim_page *page);

#endif
