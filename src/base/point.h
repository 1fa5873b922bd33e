/* base/point.h - where a simulator of the runtime itself may switch threads: nowhere, in this build.
 *
 * sim/runtime/ has another one. The build chooses by the order in which it looks for headers. */
#ifndef BASE_POINT_H
#define BASE_POINT_H

#define hd__point() ((void)0)

#endif
