/* web.h - `heddle web`. */
#ifndef WEB_H
#define WEB_H

int web_main(int argc, char **argv);

#endif
