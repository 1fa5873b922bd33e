/* name.c - looking up a name with a deadline, and what the answers mean. */
#define _DEFAULT_SOURCE /* struct addrinfo */
#include <heddle.h>
#include <netdb.h>
#include <stdio.h>

static void look_up(const char *name, const char *service)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	char host[64], port[16];
	int err = hd_getaddrinfo(name, service, &hints, &found, hd_after(HD_SEC(5)));

	if (err != 0) {
		printf("%s: %s\n", name, err == HD_EAI(EAI_NONAME) ? "there is no such host" : hd_error(err));
		return;
	}
	/* There may be several; the first is the one to try first. */
	if (hd_getnameinfo(found->ai_addr, found->ai_addrlen, host, sizeof host, port, sizeof port,
			   NI_NUMERICHOST | NI_NUMERICSERV, HD_FOREVER) == 0)
		printf("%s: %s, port %s\n", name, host, port);
	freeaddrinfo(found);
}

static void *first(void *arg)
{
	look_up("localhost", "80");
	look_up("192.0.2.7", "443"); /* an address needs no look-up */
	look_up("two words", "80");
	return arg;
}

int main(void)
{
	return hd_run(NULL, first, NULL) != 0;
}
