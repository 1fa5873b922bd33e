/* json.c - pieces of JSON, to stdout. */
#include "json.h"

#include <stdio.h>

void json_string(const char *text)
{
	putchar('"');
	for (const unsigned char *s = (const unsigned char *)text; *s != 0; s++)
		if (*s == '"' || *s == '\\')
			printf("\\%c", *s);
		else if (*s < ' ' || *s == 0x7f)
			printf("\\u%04x", *s);
		else
			putchar(*s);
	putchar('"');
}

const char *json_truth(bool b)
{
	return b ? "true" : "false";
}
