/* target.c - which program a word of the command line means. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "census.h"
#include "say.h"

#define FOUND_MAX 20

static bool is_number(const char *word)
{
	for (const char *s = word; *s != 0; s++)
		if (!isdigit((unsigned char)*s))
			return false;
	return word[0] != 0;
}

/* Whether a process is called so: its short name, or the file that it runs. */
static bool is_called(pid_t pid, const char *name)
{
	char path[64], text[PATH_MAX] = "";

	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	FILE *f = fopen(path, "re");
	if (f != NULL) {
		if (fgets(text, sizeof text, f) != NULL)
			text[strcspn(text, "\n")] = 0;
		fclose(f);
	}
	if (strcmp(text, name) == 0)
		return true;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(path, text, sizeof text - 1);
	text[n > 0 ? n : 0] = 0;
	const char *slash = strrchr(text, '/');
	return slash != NULL && strcmp(slash + 1, name) == 0;
}

static bool has_heddle(pid_t pid)
{
	struct memory m;
	struct copy copy;
	char why[512];

	if (!live_open(&m, pid, why, sizeof why))
		return false;
	bool has = copies_find(&m, &copy, 1) > 0;
	memory_close(&m);
	return has;
}

static void open_by_name(struct memory *m, const char *name)
{
	pid_t found[FOUND_MAX], other = 0;
	unsigned n = 0;
	char why[512];
	DIR *proc = opendir("/proc");

	for (struct dirent *entry; proc != NULL && n < FOUND_MAX && (entry = readdir(proc)) != NULL;) {
		pid_t pid = is_number(entry->d_name) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
		if (pid <= 0 || pid == getpid() || !is_called(pid, name))
			continue;
		if (has_heddle(pid))
			found[n++] = pid;
		else
			other = pid;
	}
	if (proc != NULL)
		closedir(proc);
	if (n == 0 && other != 0) { /* says what is wrong with it */
		snprintf(why, sizeof why, "%d", (int)other);
		target_open(m, why);
		return;
	}
	if (n == 0)
		die("%s: there is no such file, and no program of that name runs", name);
	if (n > 1) {
		char list[16 * FOUND_MAX] = "";
		for (unsigned i = 0; i < n; i++)
			snprintf(list + strlen(list), sizeof list - strlen(list), " %d", (int)found[i]);
		die("%u programs are called %s; give the number of one:%s", n, name, list);
	}
	if (!live_open(m, found[0], why, sizeof why))
		die("%s", why);
}

void target_open(struct memory *m, const char *word)
{
	struct stat status;
	char why[768];

	if (is_number(word)) {
		long pid = strtol(word, NULL, 10);
		if (pid <= 0 || pid > INT_MAX)
			die("there is no process %s", word);
		if (!live_open(m, (pid_t)pid, why, sizeof why))
			die("%s", why);
	} else if (stat(word, &status) == 0 || strchr(word, '/') != NULL) {
		if (!core_open(m, word, why, sizeof why))
			die("%s", why);
	} else {
		open_by_name(m, word);
	}
}
