/* http.h - what the HTTP servers and their client share: one page, which a client asks for again and again over connections that stay open.
 *
 * A server listens on a port of its choice at 127.0.0.1 and prints `port N`. It reads the head of a request line by line, to its end, understands
 * `Connection: close`, and gives a client 30 seconds for each request and its answer, which has a Content-Type, a Content-Length and a Date. */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H

/* As a browser's, with fewer headers. */
#define HTTP_REQUEST                                                                                                           \
	"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: text/html, text/plain;q=0.9\r\n"                    \
	"Accept-Encoding: identity\r\n\r\n"
#define HTTP_PAGE "Hello from a process of its own.\n"

enum { HTTP_REPLY_MAX = 512, HTTP_PATIENCE_S = 30 };

#endif
