/* explore.h - `heddle explore`. */
#ifndef EXPLORE_H
#define EXPLORE_H

/* argv begins behind the command's own name. Returns the exit code. */
int explore_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int run_main(int argc, char **argv);

#endif
