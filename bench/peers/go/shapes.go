// Everyday shapes of programs: items of tens of microseconds of work, handed to goroutines in the ways that Go programmers use.

package main

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// The numbers of harness.h.
const (
	crew             = 8
	poolItems        = 6400
	poolUs           = 30
	poolCapacity     = 64
	jobItems         = 6400
	jobUs            = 30
	pipelineItems    = 2000
	pipelineUs       = 20
	pipelineStages   = 5
	pipelineCapacity = 16
	monitorItems     = 4800
	monitorUs        = 20
	monitorCapacity  = 16
	mutexItems       = 3840
	mutexUs          = 50
	rwlockItems      = 9600
	rwlockUs         = 20
	writeEvery       = 16
	sleeperCount     = 400
	sleeperItems     = 6400
	sleeperUs        = 30
	sleeperNap       = time.Millisecond
	promiseItems     = 6400
	promiseUs        = 30
	promiseBatch     = 64
	sortItems        = 1024
	sortItem         = 1024
	sortCutoff       = 8192
	sortByInsertion  = 16
)

// shape prints microseconds per item: the median of three repetitions, after one that warms up.
func shape(name string, body func(int) time.Duration, items int) {
	if quick {
		items /= 4
	}
	body(items)
	values := make([]float64, 3)
	for i := range values {
		values[i] = float64(body(items).Nanoseconds()) / float64(items) / 1e3
	}
	sort.Float64s(values)
	report(name, values[len(values)/2])
}

var handled int64  // items of the running repetition that were worked on
var results uint64 // of all the work, or a compiler might leave it out

// account is called by a goroutine at its end: what it has done.
func account(done int, result uint64) {
	atomic.AddInt64(&handled, int64(done))
	atomic.AddUint64(&results, result)
}

// timeAll answers how long count goroutines took, and checks that they handled `should` items between them.
func timeAll(count int, member func(me int), should int) time.Duration {
	var all sync.WaitGroup
	handled = 0
	start := time.Now()
	all.Add(count)
	for i := 0; i < count; i++ {
		go func(me int) {
			member(me)
			all.Done()
		}(i)
	}
	all.Wait()
	took := time.Since(start)
	if handled != int64(should) {
		fail("shape", fmt.Errorf("items were lost"))
	}
	return took
}

func workAlone(n int) time.Duration {
	start := time.Now()
	x := uint64(0)
	for k := n; k > 0; k-- {
		x = work(x+uint64(k), poolUs)
	}
	account(n, x)
	return time.Since(start)
}

func runPool(n int) time.Duration {
	items := make(chan uint64, poolCapacity)
	return timeAll(1+crew, func(me int) {
		if me == 0 {
			for k := n; k > 0; k-- {
				items <- uint64(k)
			}
			close(items)
			return
		}
		x, done := uint64(0), 0
		for item := range items {
			x = work(x+item, poolUs)
			done++
		}
		account(done, x)
	}, n)
}

// runJobs has a list of jobs under a mutex. Go has no semaphore: a channel with room for a signal per job is one.
func runJobs(n int) time.Duration {
	var mutex sync.Mutex
	list := make([]uint64, 0, n+crew)
	first := 0
	there := make(chan struct{}, n+crew)
	add := func(job uint64) {
		mutex.Lock()
		list = append(list, job)
		mutex.Unlock()
		there <- struct{}{}
	}
	take := func() uint64 {
		<-there
		mutex.Lock()
		job := list[first]
		first++
		mutex.Unlock()
		return job
	}
	return timeAll(1+crew, func(me int) {
		if me == 0 {
			for k := n; k > 0; k-- {
				add(uint64(k))
			}
			for i := 0; i < crew; i++ {
				add(0)
			}
			return
		}
		x, done := uint64(0), 0
		for job := take(); job != 0; job = take() {
			x = work(x+job, jobUs)
			done++
		}
		account(done, x)
	}, n)
}

func runPipeline(n int) time.Duration {
	var belts [pipelineStages + 1]chan uint64
	for i := 1; i < pipelineStages; i++ {
		belts[i] = make(chan uint64, pipelineCapacity)
	}
	return timeAll(pipelineStages, func(me int) {
		from, to := belts[me], belts[me+1]
		x, done := uint64(0), 0
		handle := func(item uint64) {
			x = work(x+item, pipelineUs)
			done++
			if to != nil {
				to <- x
			}
		}
		if me == 0 {
			for done < n {
				handle(0)
			}
		} else {
			for item := range from {
				handle(item)
			}
		}
		if to != nil {
			close(to)
		}
		account(done, x)
	}, n*pipelineStages)
}

// runMonitor has a bounded buffer in what Go has for a monitor: a mutex and two conditions.
func runMonitor(n int) time.Duration {
	var mutex sync.Mutex
	notFull, notEmpty := sync.NewCond(&mutex), sync.NewCond(&mutex)
	var ring [monitorCapacity]uint64
	count, first := 0, 0
	put := func(item uint64) {
		mutex.Lock()
		for count == monitorCapacity {
			notFull.Wait()
		}
		ring[(first+count)%monitorCapacity] = item
		count++
		notEmpty.Signal()
		mutex.Unlock()
	}
	take := func() uint64 {
		mutex.Lock()
		for count == 0 {
			notEmpty.Wait()
		}
		item := ring[first]
		first = (first + 1) % monitorCapacity
		count--
		notFull.Signal()
		mutex.Unlock()
		return item
	}
	share := n / (crew / 2)
	return timeAll(crew, func(me int) {
		x := uint64(0)
		if me%2 == 0 {
			for k := share; k > 0; k-- {
				x = work(x, monitorUs)
				put(x)
			}
			account(0, x)
			return
		}
		for k := share; k > 0; k-- {
			x = work(x+take(), monitorUs)
		}
		account(share, x)
	}, n)
}

func runMutex(n int) time.Duration {
	var mutex sync.Mutex
	guarded, share := uint64(0), n/crew
	took := timeAll(crew, func(me int) {
		x := uint64(me)
		for k := share; k > 0; k-- {
			mutex.Lock()
			x += guarded
			guarded++
			mutex.Unlock()
			x = work(x, mutexUs)
		}
		account(share, x)
	}, n)
	if guarded != uint64(n) {
		fail("shape_mutex", fmt.Errorf("wrong count"))
	}
	return took
}

func runRWLock(n int) time.Duration {
	var lock sync.RWMutex
	guarded, share := uint64(0), n/crew
	return timeAll(crew, func(me int) {
		x := uint64(0)
		for i := 0; i < share; i++ {
			if (i+me*(writeEvery/crew))%writeEvery == 0 {
				lock.Lock()
				x = work(x+guarded, rwlockUs)
				guarded = x
				lock.Unlock()
			} else {
				lock.RLock()
				x = work(x+guarded, rwlockUs)
				lock.RUnlock()
			}
		}
		account(share, x)
	}, n)
}

func runSleepers(n int) time.Duration {
	share := n / sleeperCount
	return timeAll(sleeperCount, func(me int) {
		x := uint64(me)
		for k := share; k > 0; k-- {
			time.Sleep(sleeperNap)
			x = work(x, sleeperUs)
		}
		account(share, x)
	}, n)
}

func runPromises(n int) time.Duration {
	var batch [promiseBatch]chan uint64
	x := uint64(0)
	start := time.Now()
	for done := 0; done < n; done += promiseBatch {
		for i := range batch {
			value := make(chan uint64, 1)
			go func(task int) { value <- work(uint64(task), promiseUs) }(done + i)
			batch[i] = value
		}
		for _, value := range batch {
			x += <-value
		}
	}
	account(n, x)
	return time.Since(start)
}

func merge(left, right, to []int32) {
	l, r, k := 0, 0, 0
	for l < len(left) && r < len(right) {
		if right[r] < left[l] {
			to[k] = right[r]
			r++
		} else {
			to[k] = left[l]
			l++
		}
		k++
	}
	k += copy(to[k:], left[l:])
	copy(to[k:], right[r:])
}

func insertionSort(numbers []int32) {
	for i := 1; i < len(numbers); i++ {
		number, k := numbers[i], i
		for ; k > 0 && number < numbers[k-1]; k-- {
			numbers[k] = numbers[k-1]
		}
		numbers[k] = number
	}
}

// mergeSort sorts one half itself and has another goroutine sort the other half.
func mergeSort(numbers, spare []int32) {
	if len(numbers) <= sortByInsertion {
		insertionSort(numbers)
		return
	}
	half := len(numbers) / 2
	left, right := numbers[:half], numbers[half:]
	if len(numbers) <= sortCutoff {
		mergeSort(left, spare[:half])
		mergeSort(right, spare[half:])
	} else {
		var other sync.WaitGroup
		other.Add(1)
		go func() {
			mergeSort(left, spare[:half])
			other.Done()
		}()
		mergeSort(right, spare[half:])
		other.Wait()
	}
	merge(left, right, spare)
	copy(numbers, spare)
}

func runSort(n int) time.Duration {
	numbers, spare := make([]int32, n*sortItem), make([]int32, n*sortItem)
	seed := uint64(1)
	for i := range numbers {
		seed = step(seed)
		numbers[i], spare[i] = int32(seed>>32), 1 // the spare memory is touched now
	}
	start := time.Now()
	mergeSort(numbers, spare)
	took := time.Since(start)
	for i := 1; i < len(numbers); i++ {
		if numbers[i-1] > numbers[i] {
			fail("shape_sort", fmt.Errorf("not sorted"))
		}
	}
	return took
}
