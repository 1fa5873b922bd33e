/* json.h - pieces of JSON, to stdout. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>

void json_string(const char *text);
const char *json_truth(bool b);

#endif
