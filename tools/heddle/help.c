/* help.c - what `heddle help` teaches. */
#include "help.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char overview[] =
	"heddle - lightweight processes for C: run, explore and replay programs\n"
	"\n"
	"  heddle run FILE.c [ARGUMENT...]        compile a file against heddle, and run it\n"
	"  heddle lua FILE.lua [ARGUMENT...]      run a Lua program, whose processes are heddle's\n"
	"  heddle explore [OPTION...] PROGRAM ... run a program under thousands of schedules, and tell of the first that "
	"fails\n"
	"  heddle replay SCHEDULE PROGRAM ...     repeat one schedule, exactly\n"
	"                                         (PROGRAM: or FILE.c, which is compiled as for heddle run; or FILE.lua)\n"
	"  heddle help COMMAND                    all about it\n";

static const char explore[] =
	"heddle explore [OPTION...] PROGRAM|FILE.c|FILE.lua [ARGUMENT...]\n"
	"\n"
	"Runs a program that is linked with heddle again and again, from its hd_run on, each time under another schedule:\n"
	"its processes on virtual workers, in virtual time, switched at heddle calls as the schedule says. Stops at the first\n"
	"run that fails: a failed assertion or another signal, a deadlock, a livelock, a process that is neither joined nor\n"
	"detached, an exit status that is not 0. Then it looks for the shortest schedule that fails alike, tells its story,\n"
	"and prints the line that repeats it. A C file is compiled first, as `heddle run` does; a Lua file is\n"
	"run as `heddle lua` does.\n"
	"\n"
	"  --schedules N          at most so many (10000; no limit with --time or --policy exhaustive)\n"
	"  --time T               at most so long: 30s, 5m, 1h\n"
	"  --policy random        at each call any process that could run, each as likely as the others (the default)\n"
	"           pct:D         random ranks, the highest runs, D - 1 times the runner's becomes the lowest: finds a bug of\n"
	"                         depth D in n processes and k steps with a probability of at least 1/(n k^(D-1)) a run, if\n"
	"                         there is a virtual worker for each process and none yields\n"
	"           robin         each process in turn, once\n"
	"           exhaustive:P  all schedules with at most P preemptions, those with few first\n"
	"  --fail WHAT,...        let calls fail: malloc (the program's, heddle's and the C library's), alloc, map, guard\n"
	"                         (heddle's own memory), time (deadlines come early: time passes while processes are ready),\n"
	"                         eintr (sleeps in the kernel end early). First each Nth call alone, and all from the Nth on;\n"
	"                         then as the policy says\n"
	"  --workers N            virtual workers, 1 to 255 (as the program says; else random and pct vary it, others have 4)\n"
	"  --seed N               the first seed (1)\n"
	"  --steps N              steps for which the schedule decides (100000, or more if the first run is longer). A run "
	"that is\n"
	"                         not over some time after them is no failure, unless it goes in a circle: a livelock\n"
	"  --jobs N               so many at a time (1)\n"
	"  --checkpoint FILE      exhaustive: go on from there, and write there how far it came\n"
	"  --no-leaks             processes that are neither joined nor detached are no failure\n"
	"  --quiet                no line of progress\n"
	"\n"
	"Exit code: 0 nothing found, 1 a failure was found, 2 it could not be tried.\n"
	"\n"
	"  heddle explore philosophers.c\n"
	"  heddle explore --time 1m --fail time ./philosophers\n"
	"  heddle explore --policy pct:3 --schedules 100000 --jobs 2 ./server-test\n"
	"  heddle explore --policy exhaustive:2 ./queue-test\n"
	"\n"
	"Switches happen at heddle calls only: a data race between two of them is ThreadSanitizer's to find, and so is a "
	"missing\n"
	"fence, for memory is sequentially consistent here. A program with kernel threads of its own cannot be explored.\n";

static const char replay[] =
	"heddle replay [--trace] [--gdb] SCHEDULE PROGRAM|FILE.c|FILE.lua [ARGUMENT...]\n"
	"\n"
	"Runs the program once under a schedule that `heddle explore` printed, with its input and output where they are.\n"
	"\n"
	"  --trace    tell the story of the run: which process ran, what it called, why it waited\n"
	"  --gdb      under gdb; the schedule is the same however long the debugger stops it\n"
	"\n"
	"A schedule is one of\n"
	"  SEED or random:SEED           every choice drawn from a seed\n"
	"  pct:DEPTH:LENGTH:SEED         see `heddle help explore`\n"
	"  robin                         each process in turn\n"
	"  list:AT=OPTION,...            the usual choice, but at these decisions another one\n"
	"with :workers=N, :steps=N, :leaks=0, :fail=WHAT+..., :at=N (only the Nth fails) or :from=N behind it.\n"
	"\n"
	"Exit code: 0 no failure, or not over after so many steps, 1 it fails, 2 it could not be tried.\n";

static const char run[] =
	"heddle run [--cc COMPILER] FILE.c [ARGUMENT...]\n"
	"\n"
	"Compiles a single C file against heddle, with warnings and debugging information, and runs it. What was compiled is "
	"kept\n"
	"in $XDG_CACHE_HOME/heddle (or ~/.cache/heddle) and used again as long as the file and heddle are the same.\n"
	"Put -l... and -D... into CFLAGS and LDLIBS. Exit code: the program's; 2 when it does not compile.\n";

static const char lua[] =
	"heddle lua [--workers N] [--memory BYTES] [--budget N] FILE.lua [ARGUMENT...]\n"
	"\n"
	"Runs a Lua program. Its first process runs the file; heddle.spawn makes others, each with a Lua state of its own, "
	"and\n"
	"they send each other messages. The program is over when its last process has ended. docs/concepts/lua.md has it all.\n"
	"\n"
	"  --workers N      kernel threads that run processes (one for each CPU)\n"
	"  --memory BYTES   that each process may have, with K, M or G (256M; 0: any number); more is an error in that "
	"process\n"
	"  --budget N       Lua instructions after which a process gives others a turn (10000)\n"
	"\n"
	"Exit code: 0; 1 when the first process died of an error, or all processes wait for each other; what os.exit says; 2\n"
	"when it could not be tried, for want of the file or of Lua, say.\n";

int help(const char *command)
{
	static const struct {
		const char *name, *text;
	} pages[] = { { "explore", explore }, { "replay", replay }, { "run", run }, { "lua", lua } };

	if (command == NULL) {
		fputs(overview, stdout);
		return 1;
	}
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
		if (strcmp(pages[i].name, command) == 0) {
			fputs(pages[i].text, stdout);
			return 1;
		}
	return 0;
}
