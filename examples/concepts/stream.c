/* stream.c - a calculator that is asked by lines, and answers by lines. */
#include <errno.h>
#include <heddle.h>
#include <stdio.h>

/* Puts the answer to a line such as "6 * 7". */
static void answer(struct hd_writer *out, const char *line, hd_time until)
{
	double a, b;
	char op;

	if (sscanf(line, "%lf %c %lf", &a, &op, &b) != 3)
		hd_writer_printf(out, until, "what?\n");
	else if (op == '+')
		hd_writer_printf(out, until, "%g\n", a + b);
	else if (op == '*')
		hd_writer_printf(out, until, "%g\n", a * b);
	else
		hd_writer_printf(out, until, "I cannot %c\n", op);
}

/* One client. It may send many lines at once: they are answered in one block. */
static void *serve(void *listener)
{
	char lines[64], answers[512], *line;
	struct hd_reader in;
	struct hd_writer out;
	ssize_t n;
	int fd = hd_accept(*(int *)listener, NULL, NULL, 0, hd_after(HD_SEC(10)));

	if (fd < 0)
		return NULL;
	hd_reader_init(&in, fd, lines, sizeof lines);
	hd_writer_init(&out, fd, answers, sizeof answers);
	while ((n = hd_reader_line(&in, &line, hd_after(HD_SEC(10)))) > 0) {
		answer(&out, line, hd_after(HD_SEC(10)));
		if (hd_reader_peek(&in, 0, &line, 0) == 0 && hd_writer_flush(&out, hd_after(HD_SEC(10))) != 0)
			break; /* there is no other line yet, and the client is gone */
	}
	if (n == -EMSGSIZE)
		hd_writer_printf(&out, hd_after(HD_SEC(10)), "that line is too long\n");
	if (hd_writer_flush(&out, hd_after(HD_SEC(10))) != 0) /* it has kept the first error of all puts */
		printf("not everything was answered\n");
	hd_close(fd);
	return NULL;
}

static void *first(void *arg)
{
	static const char questions[] = "6 * 7\n0.5 + 0.25\nhello\n1 / 0\n";
	char port[16], answers[64], *line;
	struct hd_reader in;
	int listener = hd_tcp_listen("127.0.0.1", "0", 1, HD_FOREVER);
	hd_pid pid = hd_spawn(serve, &listener);

	if (listener < 0 || pid < 0)
		hd_shutdown(1);
	snprintf(port, sizeof port, "%d", hd_sock_port(listener));
	int fd = hd_tcp_connect("127.0.0.1", port, hd_after(HD_SEC(10)));
	if (fd < 0 || hd_write_all(fd, questions, sizeof questions - 1, hd_after(HD_SEC(10))) != 0)
		hd_shutdown(1);
	hd_reader_init(&in, fd, answers, sizeof answers);
	for (int i = 0; i < 4; i++)
		if (hd_reader_line(&in, &line, hd_after(HD_SEC(10))) > 0)
			printf("%s\n", line);
	hd_close(fd);
	hd_close(listener);
	if (hd_join(pid, NULL, HD_FOREVER) != 0)
		hd_shutdown(1);
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
