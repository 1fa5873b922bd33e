// The bench cases in Go: goroutines, channels and WaitGroups, as a Go programmer would write them.
//
// Run as `go-bench CASE`; the protocol is that of harness.h. BENCH_WORKERS becomes GOMAXPROCS.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const crowd = 1000
const tasks = 1000
const many = 1000000

var quick = os.Getenv("BENCH_QUICK") == "1"

func repetitions() int {
	if quick {
		return 3
	}
	return 7
}

func report(name string, value float64) {
	fmt.Printf("%s %.3f\n", name, value)
}

func fail(what string, err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
	os.Exit(1)
}

// fixed prints the median of body(n)/n*scale, after a run that warms up.
func fixed(name string, body func(int) time.Duration, n int, scale float64) {
	body(n)
	values := make([]float64, repetitions())
	for i := range values {
		values[i] = float64(body(n).Nanoseconds()) / float64(n) * scale
	}
	sort.Float64s(values)
	report(name, values[len(values)/2])
}

// size answers how many operations, a multiple of unit, take some `target`. A first run, on new stacks, would mislead.
func size(body func(int) time.Duration, unit int, target time.Duration) int {
	n := unit
	body(n)
	took := body(n)
	for took < target/4 {
		n *= 2
		took = body(n)
	}
	return (int(float64(n)*float64(target)/float64(took)/float64(unit)) + 1) * unit
}

// rate prints nanoseconds per operation, from repetitions of some 100 ms.
func rate(name string, body func(int) time.Duration, unit int) {
	target := 100 * time.Millisecond
	if quick {
		target = 20 * time.Millisecond
	}
	fixed(name, body, size(body, unit, target), 1)
}

// rateAfter prints the same, straight after the mixed load, which is run before each repetition.
func rateAfter(name string, body func(int) time.Duration, unit int) {
	n := size(body, unit, 20*time.Millisecond)
	values := make([]float64, 3)
	for i := range values {
		mixedLoad()
		values[i] = float64(body(n).Nanoseconds()) / float64(n)
	}
	sort.Float64s(values)
	report(name, values[len(values)/2])
}

func yieldAmong(count int) func(int) time.Duration {
	return func(n int) time.Duration {
		var done sync.WaitGroup
		start := time.Now()
		done.Add(count)
		for i := 0; i < count; i++ {
			go func() {
				for k := n / count; k > 0; k-- {
					runtime.Gosched()
				}
				done.Done()
			}()
		}
		done.Wait()
		return time.Since(start)
	}
}

func oneByOne(n int) time.Duration {
	var done sync.WaitGroup
	start := time.Now()
	for i := 0; i < n; i++ {
		done.Add(1)
		go done.Done()
		done.Wait()
	}
	return time.Since(start)
}

func allThenWait(n int) time.Duration {
	var done sync.WaitGroup
	start := time.Now()
	done.Add(n)
	for i := 0; i < n; i++ {
		go done.Done()
	}
	done.Wait()
	return time.Since(start)
}

func roundTrips(n int) time.Duration {
	ping, pong := make(chan int), make(chan int)
	start := time.Now()
	go func() {
		for i := 0; i < n; i++ {
			pong <- <-ping
		}
	}()
	for i := 0; i < n; i++ {
		ping <- i
		<-pong
	}
	return time.Since(start)
}

// roundTrips16 does the same with 16 bytes.
func roundTrips16(n int) time.Duration {
	ping, pong := make(chan [16]byte), make(chan [16]byte)
	start := time.Now()
	go func() {
		for i := 0; i < n; i++ {
			pong <- <-ping
		}
	}()
	for i := 0; i < n; i++ {
		ping <- [16]byte{byte(i)}
		<-pong
	}
	return time.Since(start)
}

// hops sends a token n times from one goroutine of the ring to the next; the caller starts it and takes it off at the end.
func hops(n int) time.Duration {
	laps := n / crowd
	var links [crowd]chan int
	for i := range links {
		links[i] = make(chan int)
	}
	done := make(chan bool)
	start := time.Now()
	for i := 0; i < crowd; i++ {
		go func(i int) {
			from, to := links[i], links[(i+1)%crowd]
			for k := 0; k < laps; k++ {
				token := <-from
				if i == crowd-1 && k == laps-1 {
					done <- true
					return
				}
				to <- token
			}
		}(i)
	}
	links[0] <- 1
	<-done
	return time.Since(start)
}

func grow(answer chan int, number, leaves int) {
	if leaves == 1 {
		answer <- number
		return
	}
	children := make(chan int)
	for i := 0; i < 10; i++ {
		go grow(children, number+i*(leaves/10), leaves/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-children
	}
	answer <- sum
}

func tree(leaves int) time.Duration {
	answer := make(chan int)
	start := time.Now()
	go grow(answer, 0, leaves)
	if <-answer != leaves*(leaves-1)/2 {
		fail("skynet", fmt.Errorf("wrong sum"))
	}
	return time.Since(start)
}

// step is one step of work, and the next of a sequence of numbers: that of harness.h.
func step(x uint64) uint64 {
	return x*6364136223846793005 + 1442695040888963407
}

// work is that of harness.h: some `us` microseconds of arithmetic.
func work(x uint64, us int) uint64 {
	for i := 0; i < us*750; i++ {
		x = step(x)
	}
	return x
}

func crunch(x uint64) uint64 {
	return work(x, 200)
}

func crunchAll(n int) time.Duration {
	var done sync.WaitGroup
	answers := make([]uint64, n)
	start := time.Now()
	done.Add(n)
	for i := 0; i < n; i++ {
		go func(i int) {
			answers[i] = crunch(uint64(i))
			done.Done()
		}(i)
	}
	done.Wait()
	return time.Since(start)
}

// mixedLoad is that of harness.h.
func mixedLoad() {
	var mixers sync.WaitGroup
	ends := time.Now().Add(time.Second)
	for i := 1; i <= 4; i++ {
		mixers.Add(1)
		go func(i int) {
			for time.Now().Before(ends) {
				mix(i)
			}
			mixers.Done()
		}(i)
	}
	mixers.Wait()
}

func mix(number int) {
	var all sync.WaitGroup
	var answer uint64
	all.Add(2)
	go func() {
		answer = crunch(uint64(number))
		all.Done()
	}()
	go func() {
		roundTrips(100)
		all.Done()
	}()
	for i := 0; i < 100; i++ {
		all.Add(1)
		go all.Done()
	}
	time.Sleep(time.Duration(number) * 200 * time.Microsecond)
	all.Wait()
	atomic.AddUint64(&mixed, answer)
}

var mixed uint64 // what the mixers computed, or a compiler might leave it out

func resident() float64 {
	var size, pages int
	f, err := os.Open("/proc/self/statm")
	if err != nil {
		fail("statm", err)
	}
	defer f.Close()
	if _, err := fmt.Fscan(f, &size, &pages); err != nil {
		fail("statm", err)
	}
	return float64(pages) * float64(os.Getpagesize())
}

func blocked() {
	gate := make(chan bool)
	var arrived int64
	before := resident()
	for i := 0; i < many; i++ {
		go func() {
			atomic.AddInt64(&arrived, 1)
			<-gate
		}()
	}
	for atomic.LoadInt64(&arrived) < many {
		runtime.Gosched()
	}
	report("blocked_1m", (resident()-before)/many)
}

func usage() syscall.Rusage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		fail("getrusage", err)
	}
	return u
}

func cpu() time.Duration {
	u := usage()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sleepAll() (wall, used float64) {
	var done sync.WaitGroup
	seed := uint64(1)
	start, cpuStart := time.Now(), cpu()
	done.Add(many)
	for i := 0; i < many; i++ {
		seed = step(seed)
		go func(ms int) {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			done.Done()
		}(1 + int((seed>>33)%1000))
	}
	done.Wait()
	return time.Since(start).Seconds() * 1e3, (cpu() - cpuStart).Seconds() * 1e3
}

func sleepers() {
	sleepAll()
	wall, used := sleepAll()
	report("sleepers_1m_wall", wall)
	report("sleepers_1m_cpu", used)
}

var cases = map[string]func(){
	"yield2":     func() { rate("yield2", yieldAmong(2), 2000) },
	"yield1000":  func() { rate("yield1000", yieldAmong(crowd), crowd) },
	"spawn_join": func() { rate("spawn_join", oneByOne, 1000) },
	"spawn_1m": func() {
		fixed("spawn_1m", allThenWait, many, 1)
		report("spawn_1m_peak", float64(usage().Maxrss)/1024)
	},
	"pingpong":          func() { rate("pingpong", roundTrips, 1000) },
	"pingpong_mixed":    func() { rateAfter("pingpong_mixed", roundTrips, 1000) },
	"ring1000":          func() { rate("ring1000", hops, crowd) },
	"ring1000_mixed":    func() { rateAfter("ring1000_mixed", hops, crowd) },
	"skynet":            func() { fixed("skynet", tree, many, many/1e6) },
	"fanout":            func() { fixed("fanout", crunchAll, tasks, tasks/1e6) },
	"mutex2":            func() { rate("mutex2", contend(2), 2000) },
	"mutex2_barging":    func() { rate("mutex2_barging", contend(2), 2000) },
	"mutex1000":         func() { rate("mutex1000", contend(crowd), crowd*100) },
	"mutex1000_barging": func() { rate("mutex1000_barging", contend(crowd), crowd*100) },
	"queue_1x1":         func() { rate("queue_1x1", throughQueue(1), 1000) },
	"queue_4x4":         func() { rate("queue_4x4", throughQueue(4), 1000) },
	"queue_100x100":     func() { rate("queue_100x100", throughQueue(100), 10000) },
	"condition":         func() { rate("condition", handOffs, 1000) },
	"promise":           func() { rate("promise", promises, 1000) },
	"select8":           func() { rate("select8", selectAmong8, 1000) },
	"port_pingpong":     func() { rate("port_pingpong", roundTrips, 1000) },
	"port_pingpong_16":  func() { rate("port_pingpong_16", roundTrips16, 1000) },
	"port_send":         func() { rate("port_send", throughQueue(1), 1000) },
	"port_bounded":      func() { rate("port_bounded", throughQueue(1), 1000) },
	"shape_work":        func() { shape("shape_work", workAlone, poolItems/4) },
	"shape_pool":        func() { shape("shape_pool", runPool, poolItems) },
	"shape_jobs":        func() { shape("shape_jobs", runJobs, jobItems) },
	"shape_pipeline":    func() { shape("shape_pipeline", runPipeline, pipelineItems) },
	"shape_monitor":     func() { shape("shape_monitor", runMonitor, monitorItems) },
	"shape_mutex":       func() { shape("shape_mutex", runMutex, mutexItems) },
	"shape_rwlock":      func() { shape("shape_rwlock", runRWLock, rwlockItems) },
	"shape_sleepers":    func() { shape("shape_sleepers", runSleepers, sleeperItems) },
	"shape_promise":     func() { shape("shape_promise", runPromises, promiseItems) },
	"shape_sort":        func() { shape("shape_sort", runSort, sortItems) },
	"shape_bank":        func() { shape("shape_bank", runBank(transferUs), transferItems) },
	"shape_philosophers": func() {
		shape("shape_philosophers", runPhilosophers, mealItems)
	},
	"when_1":        func() { rate("when_1", whenOne, 1000) },
	"when_2":        func() { rate("when_2", whenTwo, 1000) },
	"when_1_many":   func() { rate("when_1_many", whenOneMany, cowns*cownRuns) },
	"when_2_many":   func() { rate("when_2_many", whenTwoMany, cowns*cownRuns) },
	"when_bank":     func() { rate("when_bank", runBank(0), ahead) },
	"when_shares":   whenShares,
	"mutex_starve":  mutexStarve,
	"ticker_loop":   func() { tick("ticker_loop", loopUntil) },
	"ticker_usleep": func() { tick("ticker_usleep", usleepUntil) },
	"blocked_1m":    blocked,
	"sleepers_1m":   sleepers,
}

func main() {
	workers, err := strconv.Atoi(os.Getenv("BENCH_WORKERS"))
	if err != nil || workers < 1 {
		workers = 1
	}
	runtime.GOMAXPROCS(workers)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: go-bench CASE")
		os.Exit(2)
	}
	run, ok := cases[os.Args[1]]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such case here")
		os.Exit(77)
	}
	run()
}
