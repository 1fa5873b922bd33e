// How late a goroutine runs while another one computes on every P: reaction.h in Go, which has no priorities.
//
// Run as `reaction loop|libc`; BENCH_WORKERS becomes GOMAXPROCS. There is no C library: for its hogs, fmt formats the same text.
package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync/atomic"
	"time"
)

const nap = 2000000 // ns: a sleep is that long, or up to twice as long

func fail(what string) {
	fmt.Fprintln(os.Stderr, what)
	os.Exit(1)
}

// hog is on a cache line of its own.
type hog struct {
	turns, atFirst uint64
	_              [6]uint64
}

func (h *hog) loop() {
	for {
		atomic.StoreUint64(&h.turns, h.turns+1)
	}
}

func (h *hog) format() {
	var text bytes.Buffer
	for {
		text.Reset()
		fmt.Fprintf(&text, "%d %s %.12g", h.turns, "turns", float64(h.turns)/7)
		atomic.StoreUint64(&h.turns, h.turns+1)
	}
}

func allRun(hogs []hog) bool {
	for i := range hogs {
		if atomic.LoadUint64(&hogs[i].turns) == 0 {
			return false
		}
	}
	return true
}

func main() {
	workers, err := strconv.Atoi(os.Getenv("BENCH_WORKERS"))
	if err != nil || workers < 1 {
		workers = 1
	}
	runtime.GOMAXPROCS(workers)
	if len(os.Args) != 2 || (os.Args[1] != "loop" && os.Args[1] != "libc") {
		fmt.Fprintln(os.Stderr, "usage: reaction loop|libc")
		os.Exit(2)
	}
	hogs := make([]hog, workers)
	for i := range hogs {
		if os.Args[1] == "loop" {
			go hogs[i].loop()
		} else {
			go hogs[i].format()
		}
	}
	for !allRun(hogs) {
		time.Sleep(time.Millisecond)
	}
	for i := range hogs {
		hogs[i].atFirst = atomic.LoadUint64(&hogs[i].turns)
	}
	wakes := 300
	if os.Getenv("BENCH_QUICK") == "1" {
		wakes = 100
	}
	late := make([]float64, 0, wakes)
	seed := uint64(0)
	for i := 0; i < wakes; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
		due := time.Now().Add(time.Duration(nap + (seed>>33)%nap))
		time.Sleep(time.Until(due))
		ns := time.Since(due).Nanoseconds()
		if ns < 0 {
			fail("woken too early")
		}
		late = append(late, float64(ns)/1e3)
	}
	if len(late) != wakes {
		fail("wakes: wrong")
	}
	for i := range hogs {
		if atomic.LoadUint64(&hogs[i].turns) == hogs[i].atFirst {
			fail("a hog stood still")
		}
	}
	sort.Float64s(late)
	fmt.Printf("p50 %.3f\np99 %.3f\nmax %.3f\n", late[wakes/2], late[wakes*99/100], late[wakes-1])
}
