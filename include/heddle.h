/* heddle.h - lightweight processes for C: everything a program needs, one header per noun. */
#ifndef HEDDLE_H
#define HEDDLE_H

#include <heddle/barrier.h>
#include <heddle/base.h>
#include <heddle/blocking.h>
#include <heddle/cancel.h>
#include <heddle/child.h>
#include <heddle/errno.h>
#include <heddle/event.h>
#include <heddle/file.h>
#include <heddle/group.h>
#include <heddle/io.h>
#include <heddle/link.h>
#include <heddle/machine.h>
#include <heddle/monitor.h>
#include <heddle/mutex.h>
#include <heddle/name.h>
#include <heddle/net.h>
#include <heddle/once.h>
#include <heddle/port.h>
#include <heddle/process.h>
#include <heddle/promise.h>
#include <heddle/queue.h>
#include <heddle/runtime.h>
#include <heddle/rwlock.h>
#include <heddle/select.h>
#include <heddle/semaphore.h>
#include <heddle/signal.h>
#include <heddle/stream.h>
#include <heddle/supervisor.h>
#include <heddle/time.h>
#include <heddle/waitgroup.h>
#include <heddle/when.h>

#endif
