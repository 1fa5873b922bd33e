// How long a goroutine waits because of another: for a mutex that one goroutine locks all the time, and for a kernel thread.

package main

import (
	"sort"
	"sync"
	"syscall"
	"time"
)

func fewRepetitions() int {
	if quick {
		return 1
	}
	return 3
}

// mutexStarve prints a waiter's longest wait, counted from the call, and the latest that one got the mutex, counted from when it
// wanted to call.
func mutexStarve() {
	var mutex sync.Mutex
	var longest, late time.Duration // guarded by the mutex
	for repetition := fewRepetitions(); repetition > 0; repetition-- {
		var all sync.WaitGroup
		start := time.Now()
		over := start.Add(300 * time.Millisecond)
		all.Add(1 + 7)
		for i := 0; i < 7; i++ {
			go func() {
				due, now := start.Add(200*time.Microsecond), start
				for now.Before(over) {
					time.Sleep(time.Until(due))
					called := time.Now()
					mutex.Lock()
					now = time.Now()
					if now.Sub(called) > longest {
						longest = now.Sub(called)
					}
					if now.Sub(due) > late {
						late = now.Sub(due)
					}
					mutex.Unlock()
					due = now.Add(200 * time.Microsecond)
				}
				all.Done()
			}()
		}
		go func() {
			for time.Now().Before(over) {
				mutex.Lock()
				results = work(results, 20)
				mutex.Unlock()
			}
			all.Done()
		}()
		all.Wait()
	}
	report("mutex_starve", float64(longest.Nanoseconds())/1e3)
	report("mutex_starve_late", float64(late.Nanoseconds())/1e3)
}

const ticks = 100
const tickTime = 10 * time.Millisecond

func loopUntil(end time.Time) {
	for time.Now().Before(end) {
		results = work(results, 1)
	}
}

// usleepUntil sleeps in a system call. A signal may end it early.
func usleepUntil(end time.Time) {
	for left := time.Until(end); left > 0; left = time.Until(end) {
		request := syscall.NsecToTimespec(left.Nanoseconds())
		syscall.Nanosleep(&request, nil)
	}
}

// tick prints the microseconds by which a tick in a hundred is late, or more, while another goroutine keeps its kernel thread.
func tick(name string, keepTheThread func(time.Time)) {
	var late []float64
	for repetition := fewRepetitions(); repetition > 0; repetition-- {
		done := make(chan bool)
		go func() {
			start, begun, ticked := time.Now(), make(chan bool, 1), make(chan bool)
			go func() {
				begun <- true
				for i := 1; i <= ticks; i++ {
					due := start.Add(time.Duration(i) * tickTime)
					time.Sleep(time.Until(due))
					late = append(late, float64(time.Since(due).Nanoseconds())/1e3)
				}
				ticked <- true
			}()
			<-begun
			keepTheThread(time.Now().Add(ticks * tickTime))
			<-ticked
			done <- true
		}()
		<-done
	}
	sort.Float64s(late)
	report(name, late[len(late)*99/100-1])
}
