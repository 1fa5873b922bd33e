/* web.c - `heddle web`: a page in the browser that shows what the processes of a program do.
 *
 * The page and all that it needs are in this command. What it shows comes from children, `heddle ps --json` and its like, one for each look: they read
 * the program's memory, and end with a message when the program has gone. The server outlives that.
 *
 * Only who knows the address gets an answer: it has a token, drawn anew for each run. The server listens on this machine alone, unless it is told
 * otherwise. A request has a deadline and a limit on its size, and only so many look at a time.
 *
 * Owns:      nothing that outlives it: a process for each connection, which ends with it. */
#define _GNU_SOURCE
#include "web.h"

#include <errno.h>
#include <getopt.h>
#include <heddle.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "help.h"
#include "memory.h"
#include "say.h"
#include "web-page.h"

enum {
	TOKEN_BYTES = 16,
	LINE_SIZE = 2048,
	HEAD_MAX = 16384,     /* bytes of a request */
	ANSWER_MAX = 8 << 20, /* bytes that a child may say */
	LOOKS_MAX = 2,	      /* children at a time */
	CONNECTIONS_MAX = 64,
	WORDS_MAX = 16 /* of a child's command line */
};
#define PATIENCE HD_SEC(30)

/* The page's files: web/ in the sources. */
static const struct asset {
	const char *name, *type;
	const unsigned char *data;
	size_t size;
} assets[] = {
	{ "", "text/html; charset=utf-8", page_html, sizeof page_html },
	{ "page.css", "text/css; charset=utf-8", page_css, sizeof page_css },
	{ "page.js", "text/javascript; charset=utf-8", page_js, sizeof page_js },
};

static struct {
	char token[2 * TOKEN_BYTES + 1];
	char target[512]; /* as a child is told it: a number, or a file */
	int listener;
	struct hd_semaphore looks, places;
} web;

/* ---- what is said ---- */

struct request {
	char path[512]; /* behind the token; "" is the page */
	char *query;	/* behind a question mark, or NULL */
	bool keep_alive;
};

/* The head of an answer, and its body. Whether all of it went out. */
static bool answer(int fd, const char *status, const char *type, const void *body, size_t size, bool keep_alive)
{
	char head[512];
	hd_time until = hd_after(PATIENCE);
	int n = snprintf(
		head, sizeof head,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: %s\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
		"Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n\r\n",
		status, type, size, keep_alive ? "keep-alive" : "close");

	return hd_write_all(fd, head, (size_t)n, until) == 0 && hd_write_all(fd, body, size, until) == 0 && keep_alive;
}

static bool say(int fd, const char *status, const char *text, bool keep_alive)
{
	return answer(fd, status, "text/plain; charset=utf-8", text, strlen(text), keep_alive);
}

/* ---- looking into the program ---- */

/* The options that a page may ask for: a value is one word, and goes to the child as such. */
static const struct wish {
	const char *name, *option, *letters;
} wishes[] = {
	{ "sort", "--sort", "abcdefghijklmnopqrstuvwxyz" },
	{ "state", "--state", "abcdefghijklmnopqrstuvwxyz" },
	{ "first", "--first", "0123456789" },
};

/* Adds what the query asks for to a command line. False: it asks for something else. The words point into the query. */
static bool add_wishes(char *query, const char **words, unsigned *n)
{
	char *rest = NULL;

	for (char *word = query != NULL ? strtok_r(query, "&", &rest) : NULL; word != NULL; word = strtok_r(NULL, "&", &rest)) {
		char *value = strchr(word, '=');
		const struct wish *wish = NULL;
		if (value == NULL)
			return false;
		*value++ = '\0';
		for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
			if (strcmp(wishes[i].name, word) == 0)
				wish = &wishes[i];
		if (wish == NULL || *value == '\0' || value[strspn(value, wish->letters)] != '\0' || *n + 4 > WORDS_MAX)
			return false;
		words[(*n)++] = wish->option;
		words[(*n)++] = value;
	}
	return true;
}

/* What a page can ask for beside its own files. */
static const struct look {
	const char *name, *type;
	const char *words[3]; /* of the command */
	int worst;	      /* its exit status, at most, if it has done what it should */
} looks[] = {
	{ "ps.json", "application/json", { "ps", "--json" }, 0 },
	{ "waits.txt", "text/plain; charset=utf-8", { "waits" }, 1 },
	{ "metrics", "text/plain; version=0.0.4; charset=utf-8", { "stats", "--prometheus" }, 0 },
};

static bool answer_look(int fd, const struct look *look, struct request *q)
{
	const char *words[WORDS_MAX + 1] = { "heddle" };
	unsigned n = 1;
	int status = 0;

	for (unsigned i = 0; i < 3 && look->words[i] != NULL; i++)
		words[n++] = look->words[i];
	if (!add_wishes(q->query, words, &n))
		return say(fd, "400 Bad Request", "this page does not know such an option\n", q->keep_alive);
	words[n++] = web.target;
	words[n] = NULL;

	char *said = malloc(ANSWER_MAX);
	if (said == NULL || hd_semaphore_wait(&web.looks, hd_after(PATIENCE)) != 0) {
		free(said);
		return say(fd, "503 Service Unavailable", "too many look at a time, or there is no memory: try again\n", false);
	}
	ssize_t size = hd_child_output(
		&(struct hd_child){ .argv = words, .program = "/proc/self/exe", .in = HD_CHILD_NULL, .err = HD_CHILD_OUT },
		said, ANSWER_MAX, &status, hd_after(PATIENCE));
	hd_semaphore_signal(&web.looks);
	bool goes_on;
	if (size < 0) {
		char text[128];
		snprintf(text, sizeof text, "heddle %s could not be run: %s\n", look->words[0], hd_error((int)size));
		goes_on = say(fd, "502 Bad Gateway", text, q->keep_alive);
	} else if (size > ANSWER_MAX) {
		goes_on = say(fd, "502 Bad Gateway", "that is too much for a page: ask for fewer rows\n", q->keep_alive);
	} else if (!WIFEXITED(status) || WEXITSTATUS(status) > look->worst) {
		goes_on = answer(fd, "502 Bad Gateway", "text/plain; charset=utf-8", said, (size_t)size, q->keep_alive);
	} else {
		goes_on = answer(fd, "200 OK", look->type, said, (size_t)size, q->keep_alive);
	}
	free(said);
	return goes_on;
}

/* ---- a connection ---- */

/* Compares every character, however many are alike. */
static bool is_token(const char *text, size_t size)
{
	unsigned char differs = size != sizeof web.token - 1;

	for (size_t i = 0; i < sizeof web.token - 1; i++)
		differs |= (unsigned char)(web.token[i] ^ (i < size ? text[i] : 0));
	return differs == 0;
}

/* Reads the head of a request. Answers what is wrong with it: a status, "" when the client is gone, or NULL. */
static const char *read_request(struct hd_reader *in, struct request *q, hd_time until)
{
	char *line, target[sizeof q->path + sizeof web.token + 256];
	int minor = 0;
	ssize_t n = hd_reader_line(in, &line, until);

	if (n <= 0)
		return n == -EMSGSIZE ? "414 URI Too Long" : "";
	if (strncmp(line, "GET ", 4) != 0)
		return "405 Method Not Allowed";
	if (sscanf(line, "GET %767s HTTP/1.%d", target, &minor) != 2 || target[0] != '/')
		return "400 Bad Request";
	q->keep_alive = minor >= 1;
	for (size_t size = (size_t)n; *line != '\0'; size += (size_t)n) {
		n = hd_reader_line(in, &line, until);
		if (n <= 0)
			return n == -EMSGSIZE ? "431 Request Header Fields Too Large" : "";
		if (size + (size_t)n > HEAD_MAX)
			return "431 Request Header Fields Too Large";
		if (strcasecmp(line, "Connection: close") == 0)
			q->keep_alive = false;
		if (strncasecmp(line, "Content-Length:", 15) == 0 || strncasecmp(line, "Transfer-Encoding:", 18) == 0)
			return "413 Content Too Large";
	}
	const char *slash = strchr(target + 1, '/');
	if (slash == NULL || !is_token(target + 1, (size_t)(slash - target - 1)))
		return "403 Forbidden";
	if (strlen(slash + 1) >= sizeof q->path)
		return "414 URI Too Long";
	strcpy(q->path, slash + 1);
	q->query = strchr(q->path, '?');
	if (q->query != NULL)
		*q->query++ = '\0';
	return NULL;
}

static bool answer_request(int fd, struct request *q)
{
	for (size_t i = 0; i < sizeof assets / sizeof assets[0]; i++)
		if (strcmp(q->path, assets[i].name) == 0)
			return answer(fd, "200 OK", assets[i].type, assets[i].data, assets[i].size, q->keep_alive);
	for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++)
		if (strcmp(q->path, looks[i].name) == 0)
			return answer_look(fd, &looks[i], q);
	return say(fd, "404 Not Found", "there is nothing of that name here\n", q->keep_alive);
}

/* Closes when the client has: if something that it sent were left unread, the kernel would throw our last answer away. */
static void close_gently(int fd, hd_time until)
{
	char rest[512];

	shutdown(fd, SHUT_WR);
	while (hd_read(fd, rest, sizeof rest, until) > 0)
		;
	hd_close(fd);
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char lines[LINE_SIZE];
	struct hd_reader in;
	struct request q;
	bool goes_on = true;

	hd_reader_init(&in, fd, lines, sizeof lines);
	while (goes_on) {
		const char *wrong = read_request(&in, &q, hd_after(PATIENCE));
		if (wrong == NULL) {
			goes_on = answer_request(fd, &q);
			continue;
		}
		if (*wrong != '\0')
			say(fd, wrong,
			    strncmp(wrong, "403", 3) == 0
				    ? "the address that `heddle web` has printed is needed, with its token\n"
				    : wrong,
			    false);
		goes_on = false;
	}
	close_gently(fd, hd_after(HD_SEC(5)));
	hd_semaphore_signal(&web.places);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct hd_spawn how = { .detached = true };
	int fd;

	for (;;) {
		if (hd_semaphore_wait(&web.places, HD_FOREVER) != 0)
			return arg;
		while ((fd = hd_accept(web.listener, NULL, NULL, 0, HD_FOREVER)) < 0)
			hd_sleep(HD_MS(10)); /* no descriptor, no memory: others will end and give some back */
		if (hd_spawn_with(&how, serve, (void *)(intptr_t)fd) < 0) {
			hd_close(fd);
			hd_semaphore_signal(&web.places);
		}
	}
}

/* ---- the command ---- */

static const char *listen_host = "127.0.0.1", *listen_port = "0";

static void *begin(void *arg)
{
	bool v6 = strchr(listen_host, ':') != NULL;

	web.listener = hd_tcp_listen(listen_host, listen_port, 0, hd_after(PATIENCE));
	if (web.listener < 0) {
		fprintf(stderr, "heddle: cannot listen on %s, port %s: %s\n", listen_host, listen_port, hd_error(web.listener));
		hd_shutdown(2);
		return arg;
	}
	printf("http://%s%s%s:%d/%s/\n", v6 ? "[" : "", listen_host, v6 ? "]" : "", hd_sock_port(web.listener), web.token);
	fflush(stdout);
	return accept_all(arg);
}

static void draw_token(void)
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
		die("the system has no random numbers for a token");
	for (int i = 0; i < TOKEN_BYTES; i++)
		snprintf(web.token + 2 * i, 3, "%02x", bytes[i]);
}

/* Says at once if the program cannot be looked into, and finds its number. */
static void find_target(const char *word)
{
	struct memory m;

	target_open(&m, word);
	if (m.live)
		snprintf(web.target, sizeof web.target, "%d", (int)m.pid);
	else if ((size_t)snprintf(web.target, sizeof web.target, "%s%s", strchr(word, '/') != NULL ? "" : "./", word) >=
		 sizeof web.target)
		die("%s: the name of the file is too long", word);
	fprintf(stderr, "heddle: a page of %s, until Ctrl-C, at\n", m.name);
	memory_close(&m);
}

int web_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "listen", required_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const struct hd_config config = { .workers = 1, .fixed = true };
	char port[16];
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1)
		switch (option) {
		case 'p':
			snprintf(port, sizeof port, "%u", (unsigned)number_option("--port", optarg, 0, 65535));
			listen_port = port;
			break;
		case 'l':
			listen_host = optarg;
			break;
		case 'h':
			help("web");
			return 0;
		default:
			return 2;
		}
	if (optind + 1 != argc)
		die("which program? `heddle web PID`, or a core file, or the name of a program; `heddle help web` explains");
	find_target(argv[optind]);
	draw_token();
	hd_semaphore_init(&web.looks, LOOKS_MAX);
	hd_semaphore_init(&web.places, CONNECTIONS_MAX);
	int code = hd_run(&config, begin, NULL);
	return code < 0 ? (fprintf(stderr, "heddle: %s\n", hd_error(code)), 2) : code;
}
