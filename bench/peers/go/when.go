// Behaviours: Go has none. Each is a goroutine, which locks the mutexes of what it needs, in the order of their numbers; so there is no
// deadlock. Unlike behaviours, those that want the same mutex run in any order.

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The numbers of harness.h.
const (
	cowns         = 256
	cownRuns      = 100
	accountCount  = 1000
	ahead         = 10000
	transferItems = 6400
	transferUs    = 30
	philosophers  = 100
	mealItems     = 40 * philosophers
	mealUs        = 50
	sharers       = 6
	shareRuns     = 1000000
	shareLook     = 250
)

// An owned is a mutex and what it guards, in cache lines of their own.
type owned struct {
	mutex  sync.Mutex
	count  int
	result uint64
	_      [96]byte
}

// lockBoth locks two of a slice, the one with the smaller number first.
func lockBoth(all []owned, i, j int) {
	if i > j {
		i, j = j, i
	}
	all[i].mutex.Lock()
	all[j].mutex.Lock()
}

func unlockBoth(all []owned, i, j int) {
	all[i].mutex.Unlock()
	all[j].mutex.Unlock()
}

func check(what string, is, should int) {
	if is != should {
		fail(what, fmt.Errorf("is %d, should be %d", is, should))
	}
}

// whenOne has each goroutine start the next.
func whenOne(n int) time.Duration {
	var mutex sync.Mutex
	left, done := n, make(chan bool)
	var again func()
	again = func() {
		mutex.Lock()
		left--
		if left > 0 {
			go again()
		} else {
			done <- true
		}
		mutex.Unlock()
	}
	start := time.Now()
	go again()
	<-done
	return time.Since(start)
}

func whenTwo(n int) time.Duration {
	pair := make([]owned, 2)
	left, done := n, make(chan bool)
	var again func()
	again = func() {
		lockBoth(pair, 0, 1)
		left--
		if left > 0 {
			go again()
		} else {
			done <- true
		}
		unlockBoth(pair, 0, 1)
	}
	start := time.Now()
	go again()
	<-done
	return time.Since(start)
}

// whenOneMany has one goroutine start all others.
func whenOneMany(n int) time.Duration {
	all := make([]owned, cowns)
	var left sync.WaitGroup
	start := time.Now()
	for i := 0; i < n; i++ {
		left.Add(1)
		go func(c *owned) {
			c.mutex.Lock()
			c.count++
			c.mutex.Unlock()
			left.Done()
		}(&all[i%cowns])
		if (i+1)%(cowns*cownRuns) == 0 {
			left.Wait()
		}
	}
	left.Wait()
	took := time.Since(start)
	for i := range all {
		check("when_1_many", all[i].count, n/cowns)
	}
	return took
}

func whenTwoMany(n int) time.Duration {
	all := make([]owned, cowns)
	var left sync.WaitGroup
	start := time.Now()
	for i := 0; i < n; i++ {
		one := (2*i + i/(cowns/2)%2) % cowns
		left.Add(1)
		go func(i, j int) {
			lockBoth(all, i, j)
			all[i].count++
			all[j].count++
			unlockBoth(all, i, j)
			left.Done()
		}(one, (one+1)%cowns)
		if (i+1)%(cowns/2*cownRuns) == 0 {
			left.Wait()
		}
	}
	left.Wait()
	took := time.Since(start)
	for i := range all {
		check("when_2_many", all[i].count, 2*n/cowns)
	}
	return took
}

// drawTransfer draws the next transfer by chance.
func drawTransfer(dice *uint64) (from, to, amount int) {
	*dice = step(*dice)
	from = int(*dice>>33) % accountCount
	return from, (from + 1 + int(*dice>>45)%(accountCount-1)) % accountCount, int(*dice >> 58)
}

// runBank makes n transfers, with so many microseconds of work in each.
func runBank(us int) func(int) time.Duration {
	return func(n int) time.Duration {
		accounts := make([]owned, accountCount)
		var left sync.WaitGroup
		dice := uint64(1)
		start := time.Now()
		for i := 1; i <= n; i++ {
			from, to, amount := drawTransfer(&dice)
			left.Add(1)
			go func() {
				lockBoth(accounts, from, to)
				if us > 0 {
					accounts[from].result = work(accounts[from].result+accounts[to].result, us)
				}
				accounts[from].count -= amount
				accounts[to].count += amount
				unlockBoth(accounts, from, to)
				left.Done()
			}()
			if i%ahead == 0 {
				left.Wait()
			}
		}
		left.Wait()
		took := time.Since(start)

		should := make([]int, accountCount)
		dice = 1
		for i := 0; i < n; i++ {
			from, to, amount := drawTransfer(&dice)
			should[from] -= amount
			should[to] += amount
		}
		for i := range accounts {
			check("bank", accounts[i].count, should[i])
		}
		return took
	}
}

// runPhilosophers has a goroutine per meal, which starts the one for the next meal of its philosopher.
func runPhilosophers(n int) time.Duration {
	forks, hunger := make([]owned, philosophers), make([]owned, philosophers)
	var hungry sync.WaitGroup
	var eat func(i int)
	eat = func(i int) {
		right := (i + 1) % philosophers
		lockBoth(forks, i, right)
		hunger[i].result = work(hunger[i].result, mealUs)
		forks[i].count++
		forks[right].count++
		hunger[i].count--
		if hunger[i].count > 0 {
			go eat(i)
		} else {
			hungry.Done()
		}
		unlockBoth(forks, i, right)
	}
	for i := range hunger {
		hunger[i].count = n / philosophers
	}
	hungry.Add(philosophers)
	start := time.Now()
	for first := 0; first < 2; first++ {
		for i := first; i < philosophers; i += 2 {
			go eat(i)
		}
	}
	hungry.Wait()
	took := time.Since(start)
	for i := range forks {
		check("philosophers", forks[i].count, 2*(n/philosophers))
	}
	return took
}

// whenShares has goroutines that do not know of each other; each starts its successor, again and again.
func whenShares() {
	var sharer [sharers]struct {
		mutex  sync.Mutex
		runs   int64
		spread int64
		_      [96]byte
	}
	share := int64(shareRuns)
	if quick {
		share /= 10
	}
	var busy sync.WaitGroup
	look := func() int64 {
		least, most := share, int64(0)
		for i := range sharer {
			runs := atomic.LoadInt64(&sharer[i].runs)
			if runs < least {
				least = runs
			}
			if runs > most {
				most = runs
			}
		}
		return most - least
	}
	var again func(me int)
	again = func(me int) {
		s := &sharer[me]
		s.mutex.Lock()
		runs := atomic.AddInt64(&s.runs, 1)
		if runs%shareLook == 0 {
			if spread := look(); spread > s.spread {
				s.spread = spread
			}
		}
		if runs < share {
			go again(me)
		} else {
			busy.Done()
		}
		s.mutex.Unlock()
	}
	busy.Add(sharers)
	start := time.Now()
	for i := range sharer {
		go again(i)
	}
	busy.Wait()
	took := time.Since(start)
	largest := int64(0)
	for i := range sharer {
		check("when_shares", int(sharer[i].runs), int(share))
		if sharer[i].spread > largest {
			largest = sharer[i].spread
		}
	}
	report("when_shares", float64(took.Nanoseconds())/float64(share*sharers))
	report("when_shares_spread", float64(largest))
}
