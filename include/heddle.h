/* heddle.h - lightweight processes for C: everything a program needs, one header per noun. */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <heddle/base.h>
#include <heddle/process.h>
#include <heddle/runtime.h>
#include <heddle/semaphore.h>
#include <heddle/time.h>

#endif
