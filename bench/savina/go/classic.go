// Savina's dining philosophers, sleeping barber and cigarette smokers.

package main

type wish struct {
	who    int
	answer chan bool // nil: done
}

func philosophers() {
	const table, meals = 20, 10000
	requests := make(chan wish, 2*table)
	var forks [table]int
	var arbiters, g group
	arbiters.start(func() {
		var taken [table]bool
		var waits [table]chan bool
		try := func(i int) {
			right := (i + 1) % table
			if waits[i] == nil || taken[i] || taken[right] {
				return
			}
			taken[i], taken[right] = true, true
			waits[i] <- true
			waits[i] = nil
		}
		for r := range requests {
			if r.answer != nil {
				waits[r.who] = r.answer
				try(r.who)
				continue
			}
			taken[r.who], taken[(r.who+1)%table] = false, false
			try((r.who + table - 1) % table)
			try((r.who + 1) % table)
		}
	})
	eaten := make(chan int64, table)
	for i := 0; i < table; i++ {
		me, right, mark := i, (i+1)%table, i+1
		use := func(fork, from, to int) {
			same("fork", int64(forks[fork]), int64(from))
			forks[fork] = to
		}
		g.start(func() {
			answer, count := make(chan bool, 1), int64(0)
			for ; count < meals; count++ {
				requests <- wish{me, answer}
				<-answer
				use(me, 0, mark)
				use(right, 0, mark)
				use(me, mark, 0)
				use(right, mark, 0)
				requests <- wish{me, nil}
			}
			eaten <- count
		})
	}
	g.Wait()
	close(requests)
	arbiters.Wait()
	for i := 0; i < table; i++ {
		same("meals", <-eaten, meals)
	}
}

const mostSteps, leastSteps = 1000, 10

// A visit to the waiting room; nil: the barber is free. It is answered whether the hair was cut.
type visit chan bool

// toFactory: a customer that has been served, or (with a channel) that wants to be sent again.
type toFactory chan bool

func barber() {
	const customers, seats = 5000, 1000
	room, chair, factory := make(chan visit, mail), make(chan visit, 1), make(chan toFactory, customers)
	var rooms, barbers, g group
	rooms.start(func() {
		var waiting []visit
		sleeps := true
		for v := range room {
			if v == nil {
				sleeps = true
			} else if len(waiting) == seats {
				v <- false
				continue
			} else {
				waiting = append(waiting, v)
			}
			if sleeps && len(waiting) > 0 {
				chair <- waiting[0]
				waiting = waiting[1:]
				sleeps = false
			}
		}
	})
	barbers.start(func() {
		x := randoms(2)
		for v := range chair {
			work(leastSteps + x.below(mostSteps))
			v <- true
			room <- nil
		}
	})
	x := randoms(1)
	for i := 0; i < customers; i++ {
		g.start(func() {
			answer, again := make(visit, 1), make(toFactory, 1)
			for {
				room <- answer
				if <-answer {
					break
				}
				factory <- again
				<-again
			}
			factory <- nil
		})
		work(leastSteps + x.below(mostSteps))
	}
	var back []toFactory
	for served := 0; served < customers; {
		if customer := <-factory; customer != nil {
			back = append(back, customer)
		} else {
			served++
		}
		if len(back) > 0 && customers-served-len(back) < seats {
			back[len(back)-1] <- true
			back = back[:len(back)-1]
		}
	}
	g.Wait()
	same("customers that did not come again", int64(len(back)), 0)
	close(chair)
	barbers.Wait()
	close(room)
	rooms.Wait()
}

func smokers() {
	const count, rounds = 200, 1000
	type start struct {
		steps  int64
		answer chan bool
	}
	var ports [count]chan start
	var smoked, should [count]int64
	var g group
	for i := range ports {
		i := i
		ports[i] = make(chan start, 1)
		g.start(func() {
			for s := range ports[i] {
				s.answer <- true
				work(s.steps)
				smoked[i]++
			}
		})
	}
	x, answer := randoms(1), make(chan bool, 1)
	for k := 0; k < rounds; k++ {
		chosen := x.below(count)
		should[chosen]++
		ports[chosen] <- start{leastSteps + x.below(mostSteps), answer}
		<-answer
	}
	for _, port := range ports {
		close(port)
	}
	g.Wait()
	for i := range smoked {
		same("smoked", smoked[i], should[i])
	}
}
