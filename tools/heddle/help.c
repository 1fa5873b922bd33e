/* help.c - what `heddle help` teaches. */
#include "help.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char overview[] =
	"heddle - lightweight processes for C: run, explore and replay programs, and look into them\n"
	"\n"
	"  heddle run FILE.c [ARGUMENT...]        compile a file against heddle, and run it\n"
	"  heddle lua FILE.lua [ARGUMENT...]      run a Lua program, whose processes are heddle's\n"
	"  heddle explore [OPTION...] PROGRAM ... run a program under thousands of schedules, and tell of the first that "
	"fails\n"
	"  heddle replay SCHEDULE PROGRAM ...     repeat one schedule, exactly\n"
	"                                         (PROGRAM: or FILE.c, which is compiled as for heddle run; or FILE.lua)\n"
	"  heddle ps PID|CORE|NAME                what each process of a program does, without stopping it; or of a core file\n"
	"  heddle waits PID|CORE|NAME             which processes wait for which, and why nothing moves\n"
	"  heddle bt PID|CORE|NAME [ID...]        where in the program its processes are: backtraces, equal ones together\n"
	"  heddle web PID|CORE|NAME               the same in a browser: a page that follows the program\n"
	"  heddle stats PID|CORE|NAME             a program in numbers: for people, as JSON, or for Prometheus\n"
	"  heddle top PID|NAME                    its processes, looked at each second: what is wrong first, then what runs "
	"most\n"
	"  heddle trace PID|NAME                  record what a program does, for a while: a timeline for Perfetto\n"
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
	"heddle replay [--trace[=FILE]] [--gdb] SCHEDULE PROGRAM|FILE.c|FILE.lua [ARGUMENT...]\n"
	"\n"
	"Runs the program once under a schedule that `heddle explore` printed, with its input and output where they are.\n"
	"\n"
	"  --trace    tell the story of the run: which process ran, what it called, why it waited\n"
	"  --trace=FILE.json   write a timeline of the run, in virtual time, as `heddle trace` does\n"
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

static const char ps[] =
	"heddle ps [OPTION...] PID|CORE|NAME\n"
	"\n"
	"Prints what each process of a program does: of one that runs, by its number or its name, or of a core file. The "
	"program\n"
	"needs no change and no setting. It is not stopped, and need not answer: it may hang with all its workers stuck.\n"
	"\n"
	"  --state STATE      only those that are ready, running, waiting, suspended or ended\n"
	"  --name PATTERN     only those with such a name: 'conn*'\n"
	"  --priority N[-M]   only those that run with such a priority\n"
	"  --sort KEY         id (the default), name, state, priority, cpu, for (the longest first), switches, stack, waiters\n"
	"  --first N          no more than the first N of them\n"
	"  --json             as JSON; docs/ps.schema.json describes it\n"
	"\n"
	"ID is a slot, and behind a dot how many processes it has had; PRIO the priority, and behind a > a higher one that it "
	"was\n"
	"lent; WRK its worker, p if it is pinned there; FOR how long it has been in its state; STACK the most that was used, "
	"of how\n"
	"much; ',d' behind STATE says daemon. 'changing' is a process that ran each time that it was looked at.\n"
	"\n"
	"Exit code: 0; 2 when it could not be tried.\n";

static const char waits[] =
	"heddle waits [--all] [--dot] PID|CORE|NAME\n"
	"\n"
	"Tells why nothing moves in a program that runs, or in a core file: circles of processes that wait for each other, "
	"waits\n"
	"for what an ended process has not given up, for what a plain thread has, workers whose process does not give way,\n"
	"priority inversions; then the longest waits.\n"
	"\n"
	"  --all   not only the first ten of each\n"
	"  --dot   the graph of the waits that are for an owner, for dot(1); circles are red\n"
	"\n"
	"Exit code: 0; 1 when a deadlock was found, a circle or an ended owner; 2 when it could not be tried.\n";

static const char bt[] =
	"heddle bt [OPTION...] PID|CORE|NAME [ID...]\n"
	"heddle bt --resolve [--root DIRECTORY] <LOG\n"
	"\n"
	"Prints where in the program its processes are: functions, files and lines, equal backtraces together, those that "
	"most\n"
	"processes have first. Of all processes, or of those with these ids (12, 12.3 or an hd_pid). The program runs on.\n"
	"\n"
	"  --stop             of those that run, too: stops one worker's thread after the other, each for a moment\n"
	"  --all              heddle's own functions, too\n"
	"  --json             as JSON; docs/bt.schema.json describes it\n"
	"  --root DIRECTORY   the program's files are there, in place of /\n"
	"  --resolve          names the places in a text that look like /usr/bin/server+0x12a4, as heddle prints them when a\n"
	"                     program crashes\n"
	"\n"
	"Files and lines need debug information (cc -g), in the program's files or where Debian's -dbgsym packages have it. "
	"Without\n"
	"it there are functions, and in stripped programs those of shared libraries.\n"
	"\n"
	"Exit code: 0; 2 when it could not be tried.\n";

static const char web[] =
	"heddle web [OPTION...] PID|CORE|NAME\n"
	"\n"
	"Prints the address of a page for a browser, and serves it until Ctrl-C: a table of the processes, which of them wait "
	"for which, what each\n"
	"did during the last minute, and how long they have waited. The page looks once a second, as `heddle ps` does: the "
	"program is not stopped.\n"
	"It shows 500 processes, or 2000: the first in the order that is chosen.\n"
	"\n"
	"The page and all that it needs come from this command; nothing is fetched from elsewhere. The address has a token, "
	"without which nothing is\n"
	"answered. Programs of this machine alone can reach it, unless --listen says otherwise: what is sent is not "
	"encrypted.\n"
	"\n"
	"  --port N           on this port (0: any that is free)\n"
	"  --listen ADDRESS   for other machines, too: 0.0.0.0, or an address of this machine\n"
	"\n"
	"When the program has ended, the page says so and shows what was last seen. Exit code: 2 when it could not be tried.\n";

static const char trace[] =
	"heddle trace [OPTION...] PID|NAME\n"
	"heddle trace [OPTION...] FILE\n"
	"\n"
	"Records what the processes and workers of a program do, for a while, and writes a timeline of it, which\n"
	"https://ui.perfetto.dev opens, or chrome://tracing: a track for each worker and each process, arrows from the process "
	"that\n"
	"wakes, spawns or sends to the one that runs then. The program needs no change and no setting, and runs on: it is "
	"asked by a\n"
	"word in its memory, which has a time limit. FILE is what a program has recorded with HEDDLE_TRACE=FILE in its "
	"environment,\n"
	"from its start: the last events of each worker, as of its end, or of a report. Or a core file of such a program.\n"
	"\n"
	"  --seconds S        for so long (2); SIGINT ends it before\n"
	"  -o, --output FILE  where to (trace.json); - is stdout\n"
	"  --size N           events that each worker keeps until they are read (262144): 32 bytes each, in the program\n"
	"  --events N         ends when there are so many (4000000)\n"
	"  --processes N      tracks for the N processes with the most events (500)\n"
	"\n"
	"Events that were overwritten before they were read are counted, and said. Exit code: 0; 2 when it could not be "
	"tried.\n";

static const char stats[] =
	"heddle stats [--json | --prometheus] [--latency S] PID|CORE|NAME\n"
	"\n"
	"Prints a program in numbers: processes by state, those that wait by the call, those that are ready by priority; of "
	"each\n"
	"worker, how long it was busy and how often it switched; messages, deadlines, stacks. Counters are those of hd_stats.\n"
	"\n"
	"  --json         as JSON\n"
	"  --prometheus   in the text format of Prometheus\n"
	"  --latency S    and for how long processes were ready before they ran: the program is traced for S seconds for that\n"
	"\n"
	"Exit code: 0; 2 when it could not be tried.\n";

static const char top[] =
	"heddle top [OPTION...] PID|NAME\n"
	"\n"
	"Shows the processes of a program, once a second, without stopping it; first what is wrong: a process that has not "
	"given way\n"
	"for 100 ms (a hog), or whose worker is blocked in the kernel; priorities with processes that have been ready for a "
	"second\n"
	"(they starve); stacks of which more than 80 % was used; more and more messages. Then the load of each worker, and "
	"the\n"
	"processes. CPU% is of one CPU, since the last look; WAITERS how many wait for something that it has.\n"
	"\n"
	"  --sort KEY   cpu (the default), wait (the longest first), queue (the most waiters first); or by the keys c, w, l\n"
	"  --delay S    seconds between two looks (1)\n"
	"  --once       one table as plain text, after a delay; also when stdout is no terminal\n"
	"\n"
	"q ends it. Exit code: 0; 2 when it could not be tried.\n";

int help(const char *command)
{
	static const struct {
		const char *name, *text;
	} pages[] = { { "explore", explore }, { "replay", replay }, { "run", run }, { "lua", lua },
		      { "ps", ps },	      { "waits", waits },   { "bt", bt },   { "trace", trace },
		      { "stats", stats },     { "top", top },	    { "web", web } };

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
