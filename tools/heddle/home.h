/* home.h - where heddle is: where it was installed, or where this command was built. */
#ifndef HOME_H
#define HOME_H

struct home {
	const char *include, *lib;
	const char *malloc; /* what is loaded before a program whose memory may fail: malloc.c */
	const char *lua;    /* what runs Lua programs; it may not be there */
};

const struct home *find_home(void);

#endif
