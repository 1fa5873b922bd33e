// What it costs to share: a mutex that many want, buffered channels, a condition, a value that will come, a select.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const capacity = 128

// contend has count goroutines lock a mutex n times in all.
func contend(count int) func(int) time.Duration {
	return func(n int) time.Duration {
		var shared struct {
			sync.Mutex
			counter int
		}
		var done sync.WaitGroup
		start := time.Now()
		done.Add(count)
		for i := 0; i < count; i++ {
			go func() {
				for k := n / count; k > 0; k-- {
					shared.Lock()
					shared.counter++
					shared.Unlock()
				}
				done.Done()
			}()
		}
		done.Wait()
		took := time.Since(start)
		if shared.counter != n {
			fail("mutex", fmt.Errorf("wrong count"))
		}
		return took
	}
}

// sumTo answers what a producer's items add up to: they are n, n-1 and so on to 1.
func sumTo(n int) int64 {
	return int64(n) * int64(n+1) / 2
}

func produce(to chan<- int64, n int) {
	for k := n; k > 0; k-- {
		to <- int64(k)
	}
}

// throughQueue sends n items from `pairs` producers to as many consumers.
func throughQueue(pairs int) func(int) time.Duration {
	return func(n int) time.Duration {
		items := make(chan int64, capacity)
		share, taken := n/pairs, int64(0)
		var done sync.WaitGroup
		start := time.Now()
		done.Add(pairs)
		for i := 0; i < pairs; i++ {
			go produce(items, share)
			go func() {
				sum := int64(0)
				for k := share; k > 0; k-- {
					sum += <-items
				}
				atomic.AddInt64(&taken, sum)
				done.Done()
			}()
		}
		done.Wait()
		took := time.Since(start)
		if taken != int64(pairs)*sumTo(share) {
			fail("queue", fmt.Errorf("wrong sum"))
		}
		return took
	}
}

// handOffs passes the turn between two goroutines, n times.
func handOffs(n int) time.Duration {
	var mutex sync.Mutex
	var done sync.WaitGroup
	changed := sync.NewCond(&mutex)
	turn := 0
	start := time.Now()
	done.Add(2)
	for i := 0; i < 2; i++ {
		go func(me int) {
			for k := n / 2; k > 0; k-- {
				mutex.Lock()
				for turn != me {
					changed.Wait()
				}
				turn = 1 - me
				changed.Signal()
				mutex.Unlock()
			}
			done.Done()
		}(i)
	}
	done.Wait()
	return time.Since(start)
}

func promises(n int) time.Duration {
	sum := int64(0)
	start := time.Now()
	for k := n; k > 0; k-- {
		value := make(chan int64, 1)
		go func(k int) { value <- int64(k) }(k)
		sum += <-value
	}
	took := time.Since(start)
	if sum != sumTo(n) {
		fail("promise", fmt.Errorf("wrong sum"))
	}
	return took
}

// selectAmong8 takes n items from eight channels with a producer each.
func selectAmong8(n int) time.Duration {
	var from [8]chan int64
	share, sum := n/len(from), int64(0)
	for i := range from {
		from[i] = make(chan int64, capacity)
	}
	start := time.Now()
	for _, to := range from {
		go produce(to, share)
	}
	for k := n; k > 0; k-- {
		var item int64
		select {
		case item = <-from[0]:
		case item = <-from[1]:
		case item = <-from[2]:
		case item = <-from[3]:
		case item = <-from[4]:
		case item = <-from[5]:
		case item = <-from[6]:
		case item = <-from[7]:
		}
		sum += item
	}
	took := time.Since(start)
	if sum != int64(len(from))*sumTo(share) {
		fail("select8", fmt.Errorf("wrong sum"))
	}
	return took
}
