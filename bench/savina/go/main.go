// The programs of bench/savina in Go: a process is a goroutine, its port a channel, and an answer comes through a channel of the caller's.
//
// Run as `savina NAME`; prints the milliseconds that it takes, as heddle-savina does. BENCH_WORKERS becomes GOMAXPROCS.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// mail is how many messages a channel holds where any number would do.
const mail = 128

func fail(what string) {
	fmt.Fprintf(os.Stderr, "%s: wrong\n", what)
	os.Exit(1)
}

func same(what string, is, should int64) {
	if is != should {
		fail(what)
	}
}

// randoms is the sequence of savina.h.
type randoms uint64

func (x *randoms) below(n int64) int64 {
	*x = *x * 16807 % 2147483647
	return int64(*x) % n
}

var workResults uint64

// work is that of savina.h.
func work(steps int64) {
	x := uint64(1)
	for ; steps > 0; steps-- {
		x = x * 16807 % 2147483647
	}
	atomic.AddUint64(&workResults, x)
}

// group waits for goroutines.
type group struct{ sync.WaitGroup }

func (g *group) start(run func()) {
	g.Add(1)
	go func() {
		run()
		g.Done()
	}()
}

var programs = map[string]func(){
	"ping_pong":            pingPong,
	"counting":             counting,
	"fork_join_throughput": forkJoinThroughput,
	"fork_join_create":     forkJoinCreate,
	"thread_ring":          threadRing,
	"chameneos":            chameneos,
	"big":                  big,
	"dictionary":           dictionary,
	"sorted_list":          sortedList,
	"bounded_buffer":       boundedBuffer,
	"philosophers":         philosophers,
	"barber":               barber,
	"smokers":              smokers,
	"logistic_map":         logisticMap,
	"bank":                 bank,
}

func main() {
	workers, err := strconv.Atoi(os.Getenv("BENCH_WORKERS"))
	if err != nil || workers < 1 {
		workers = 1
	}
	runtime.GOMAXPROCS(workers)
	if len(os.Args) != 2 || programs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "no such program here")
		os.Exit(77)
	}
	run := programs[os.Args[1]]
	values := make([]float64, 5)
	if os.Getenv("BENCH_QUICK") == "1" {
		values = values[:1]
	}
	run()
	for i := range values {
		start := time.Now()
		run()
		values[i] = float64(time.Since(start).Nanoseconds()) / 1e6
	}
	sort.Float64s(values)
	fmt.Printf("%s %.3f\n", os.Args[1], values[len(values)/2])
}
